/// Compact JSON with the bytes of ``WireCoding/encode(_:)``. Callers write members in sorted order.
extension ByteWriter {
    /// Writes a quoted and escaped string (RFC 8259 §7).
    package mutating func string(_ text: String) {
        var text = text
        put("\"")
        text.withUTF8 { text in
            let plain = UnescapedRun(in: text, from: 0).end
            put(UnsafeBufferPointer(rebasing: text[..<plain]))
            if plain < text.count { putEscaped(UnsafeBufferPointer(rebasing: text[plain...])) }
        }
        put("\"")
    }

    private mutating func putEscaped(_ text: UnsafeBufferPointer<UInt8>) {
        var start = 0
        for position in text.indices where UnescapedRun.isStop(text[position]) {
            put(UnsafeBufferPointer(rebasing: text[start..<position]))
            start = position + 1
            putEscape(text[position])
        }
        put(UnsafeBufferPointer(rebasing: text[start...]))
    }

    private mutating func putEscape(_ byte: UInt8) {
        switch byte {
        case UInt8(ascii: "\""): put(#"\""#)
        case UInt8(ascii: "\\"): put(#"\\"#)
        case 0x08: put(#"\b"#)
        case 0x09: put(#"\t"#)
        case 0x0a: put(#"\n"#)
        case 0x0c: put(#"\f"#)
        case 0x0d: put(#"\r"#)
        default:
            put(byte < 16 ? #"\u000"# : #"\u001"#)
            put(text: String(byte & 15, radix: 16))
        }
    }

    /// Writes a number. Infinities and NaN become `null`, because JSON has no literals for them.
    package mutating func double(_ value: Double) {
        if let whole = Int64(exactly: value) {
            put(whole)
        } else {
            put(text: value.isFinite ? value.description : "null")
        }
    }

    /// Writes any value with sorted keys. `write` writes each string value.
    package mutating func value(
        _ value: JSONValue, string write: (inout ByteWriter, String) -> Void = { $0.string($1) }
    ) {
        switch value {
        case .null: put("null")
        case .bool(let value): put(value ? "true" : "false")
        case .int(let value): put(value)
        case .double(let value): double(value)
        case .string(let text): write(&self, text)
        case .array(let values):
            put("[")
            for (index, value) in values.enumerated() {
                if index > 0 { put(",") }
                self.value(value, string: write)
            }
            put("]")
        case .object(let members): object(members, string: write)
        }
    }

    /// Writes an object with sorted keys.
    package mutating func object(
        _ members: [String: JSONValue], string write: (inout ByteWriter, String) -> Void = { $0.string($1) }
    ) {
        put("{")
        var isFirst = true
        for name in members.keys.sorted() {
            if !isFirst { put(",") }
            isFirst = false
            string(name)
            put(":")
            value(members[name] ?? .null, string: write)
        }
        put("}")
    }

    /// Writes the name of a member, given with its quotes and colon, and a string.
    package mutating func member(_ name: StaticString, _ value: String) {
        put(name)
        string(value)
    }

    /// Writes an array with one element a row.
    @inline(__always)
    mutating func list(of rows: Int, _ write: (inout ByteWriter, Int) -> Void) {
        put("[")
        for row in 0..<rows {
            if row > 0 { put(",") }
            write(&self, row)
        }
        put("]")
    }

    /// Writes a column of a table: one value a row, or one for all rows. Accesses rows by index, because copying one
    /// is expensive.
    @inline(__always)
    mutating func column<Value: Equatable>(
        of rows: Int, _ value: (Int) -> Value, _ write: (inout ByteWriter, Value) -> Void
    ) {
        let isShared = (0..<rows).dropFirst().allSatisfy { value($0) == value(0) }
        list(of: isShared ? min(rows, 1) : rows) { json, row in write(&json, value(row)) }
    }
}

import FoundationEssentials

/// Values of messages.
extension JSONReader {
    /// Reads `null` as `nil`, any other value with `value`.
    @inline(__always)
    mutating func optional<Value>(
        _ value: (inout JSONReader) throws(Unreadable) -> Value
    ) throws(Unreadable) -> Value? {
        try consumeNull() ? nil : try value(&self)
    }

    mutating func optionalString() throws(Unreadable) -> String? { try consumeNull() ? nil : try string() }

    mutating func optionalInteger() throws(Unreadable) -> Int64? { try consumeNull() ? nil : try integer() }

    /// Reads a string that is a raw value of `Value`.
    mutating func enumValue<Value: RawRepresentable<String> & CaseIterable>(
        _: Value.Type = Value.self
    ) throws(Unreadable) -> Value {
        guard try peek() == UInt8(ascii: "\"") else { throw Unreadable() }
        let text = try canonicalString()
        for value in Value.allCases where isText(value.rawValue, in: text.lowerBound + 1..<text.upperBound - 1) {
            return value
        }
        throw Unreadable()
    }

    /// Reads a raw value of `Value`, or `null` as `nil`.
    mutating func optionalEnumValue<Value: RawRepresentable<String> & CaseIterable>(
        _: Value.Type = Value.self
    ) throws(Unreadable) -> Value? {
        try consumeNull() ? nil : try enumValue(Value.self)
    }

    /// Reads a string that `Value` accepts.
    mutating func validated<Value: ValidatedString>(_: Value.Type = Value.self) throws(Unreadable) -> Value {
        guard let value = Value(rawValue: try string()) else { throw Unreadable() }
        return value
    }

    mutating func timestamp() throws(Unreadable) -> Timestamp { Timestamp(milliseconds: try integer()) }

    mutating func optionalTimestamp() throws(Unreadable) -> Timestamp? {
        try optionalInteger().map(Timestamp.init(milliseconds:))
    }

    /// Reads a UUID in its canonical form.
    mutating func uuid() throws(Unreadable) -> UUID {
        guard try peek() == UInt8(ascii: "\""), position + 38 <= bytes.count,
            bytes[position + 37] == UInt8(ascii: "\""),
            let id = Hexadecimal.uuid(UnsafeBufferPointer(rebasing: bytes[position + 1..<position + 37]))
        else { throw Unreadable() }
        position += 38
        return id
    }

    private func isText(_ text: String, in range: Range<Int>) -> Bool {
        var text = text
        return text.withUTF8 { $0.count == range.count && matches($0, at: range.lowerBound) }
    }
}

/// Arrays of messages.
extension JSONReader {
    /// Reads an array that makes up most of the remaining bytes.
    @inline(__always)
    mutating func elements<Element>(
        _ read: (inout JSONReader) throws(Unreadable) -> Element
    ) throws(Unreadable) -> [Element] {
        let start = position
        var elements: [Element] = []
        try array { (reader) throws(Unreadable) in
            elements.append(try read(&reader))
            // Reserves capacity by the length of the first element. Most arrays have one.
            if elements.count == 1, reader.isNext(UInt8(ascii: ",")) {
                elements.reserveCapacity(
                    1 + (reader.bytes.count - reader.position) / max(reader.position - start, 16))
            }
        }
        return elements
    }

    /// Reads an array of UUIDs.
    @inline(__always)
    mutating func ids<Element>(_ make: (UUID) -> Element) throws(Unreadable) -> [Element] {
        var elements: [Element] = []
        elements.reserveCapacity(numberOfIDs)
        try array { (reader) throws(Unreadable) in elements.append(make(try reader.uuid())) }
        return elements
    }

    /// The number of UUIDs in the next array. Each takes 39 bytes, with its quotes and a comma.
    private var numberOfIDs: Int {
        let (first, width) = (position + 1, 39)
        var comma = first + width - 1
        while comma < bytes.count, bytes[comma] == UInt8(ascii: ",") { comma += width }
        return (comma - first) / width + 1
    }

    /// Reads an array with one value for each of the `rows`.
    @inline(__always)
    mutating func list<Row, Value>(
        of rows: inout [Row], read: (inout JSONReader) throws(Unreadable) -> Value, set: (inout Row, Value) -> Void
    ) throws(Unreadable) {
        var row = 0
        // A buffer avoids the array's uniqueness check in each row.
        try rows.withUnsafeMutableBufferPointer { (rows) throws(Unreadable) in
            try array { (reader) throws(Unreadable) in
                guard row < rows.count else { throw Unreadable() }
                set(&rows[row], try read(&reader))
                row += 1
            }
        }
        guard row == rows.count else { throw Unreadable() }
    }

    /// Reads a column of a table: one value for each of the `rows`, or one for all.
    @inline(__always)
    mutating func column<Row, Value>(
        of rows: inout [Row], read: (inout JSONReader) throws(Unreadable) -> Value, set: (inout Row, Value) -> Void
    ) throws(Unreadable) {
        try rows.withUnsafeMutableBufferPointer { (rows) throws(Unreadable) in
            var row = 0
            var first: Value?
            try array { (reader) throws(Unreadable) in
                guard row < rows.count || row == 0 else { throw Unreadable() }
                let value = try read(&reader)
                if row == 0 { first = value }
                if row < rows.count { set(&rows[row], value) }
                row += 1
            }
            if row == rows.count { return }
            guard row == 1, let first else { throw Unreadable() }
            for row in rows.indices.dropFirst() { set(&rows[row], first) }
        }
    }
}

package import FoundationEssentials

/// Writes compact JSON into bytes, with the same result as ``WireCoding/encode(_:)``. Callers write members in sorted
/// order.
package struct JSONByteWriter {
    package private(set) var bytes: [UInt8] = []

    package init(capacity: Int = 256) { bytes.reserveCapacity(capacity) }

    /// Writes `text` unchanged: brackets, commas, names.
    package mutating func raw(_ text: StaticString) {
        bytes.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Writes existing JSON unchanged.
    package mutating func raw(bytes json: [UInt8]) { bytes.append(contentsOf: json) }

    /// Writes a quoted and escaped string (RFC 8259 §7).
    package mutating func string(_ text: String) {
        var text = text
        bytes.append(UInt8(ascii: "\""))
        text.withUTF8 { text in
            let plain = UnescapedRun(in: text, from: 0).end
            bytes.append(contentsOf: UnsafeBufferPointer(rebasing: text[..<plain]))
            for byte in text[plain...] { escaped(byte) }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private mutating func escaped(_ byte: UInt8) {
        switch byte {
        case UInt8(ascii: "\""): raw(#"\""#)
        case UInt8(ascii: "\\"): raw(#"\\"#)
        case 0x08: raw(#"\b"#)
        case 0x09: raw(#"\t"#)
        case 0x0a: raw(#"\n"#)
        case 0x0c: raw(#"\f"#)
        case 0x0d: raw(#"\r"#)
        case 0..<0x20:
            raw(#"\u00"#)
            bytes.append(UInt8(ascii: "0") + (byte >> 4))
            let low = byte & 15
            bytes.append(low < 10 ? UInt8(ascii: "0") + low : UInt8(ascii: "a") + low - 10)
        default: bytes.append(byte)
        }
    }

    /// Writes a quoted UUID in upper case, as `UUID` encodes itself.
    package mutating func uuid(_ id: UUID) {
        bytes.append(UInt8(ascii: "\""))
        Hexadecimal.append(id, .upper, to: &bytes)
        bytes.append(UInt8(ascii: "\""))
    }

    package mutating func integer(_ value: Int64) { Self.append(value, to: &bytes) }

    /// Appends the decimal digits of `value`.
    package static func append(_ value: Int64, to bytes: inout [UInt8]) {
        guard value >= 0 else {
            bytes.append(contentsOf: Array(String(value).utf8))
            return
        }
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
            var rest = UInt64(value)
            var position = 20
            repeat {
                position -= 1
                digits[position] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
                rest /= 10
            } while rest > 0
            bytes.append(contentsOf: UnsafeMutableBufferPointer(rebasing: digits[position...]))
        }
    }

    /// Writes a number. Infinities and NaN become `null`, because JSON has no literals for them.
    package mutating func double(_ value: Double) {
        if let whole = Int64(exactly: value) {
            integer(whole)
        } else {
            bytes.append(contentsOf: Array((value.isFinite ? value.description : "null").utf8))
        }
    }

    /// Writes any value with sorted keys. `write` writes each string value.
    package mutating func value(
        _ value: JSONValue, string write: (inout JSONByteWriter, String) -> Void = { $0.string($1) }
    ) {
        switch value {
        case .null: raw("null")
        case .bool(let value): raw(value ? "true" : "false")
        case .int(let value): integer(value)
        case .double(let value): double(value)
        case .string(let text): write(&self, text)
        case .array(let values):
            raw("[")
            for (index, value) in values.enumerated() {
                if index > 0 { raw(",") }
                self.value(value, string: write)
            }
            raw("]")
        case .object(let members): object(members, string: write)
        }
    }

    /// Writes an object with sorted keys.
    package mutating func object(
        _ members: [String: JSONValue], string write: (inout JSONByteWriter, String) -> Void = { $0.string($1) }
    ) {
        raw("{")
        var isFirst = true
        for name in members.keys.sorted() {
            if !isFirst { raw(",") }
            isFirst = false
            string(name)
            raw(":")
            value(members[name] ?? .null, string: write)
        }
        raw("}")
    }
}

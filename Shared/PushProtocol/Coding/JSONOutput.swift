package import FoundationEssentials

/// Writes compact JSON straight into bytes, as the general encoder (``WireCoding``) would: plain slashes, no spaces.
/// Whoever writes an object writes its members in the order of their names.
package struct JSONOutput {
    package private(set) var bytes: [UInt8] = []

    package init(capacity: Int = 256) { bytes.reserveCapacity(capacity) }

    /// Writes `text` as it is: brackets, commas, names.
    package mutating func raw(_ text: StaticString) {
        bytes.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Writes a quoted string with what JSON must escape escaped (RFC 8259 §7).
    package mutating func string(_ text: String) {
        var text = text
        bytes.append(UInt8(ascii: "\""))
        text.withUTF8 { text in
            if text.allSatisfy({ $0 >= 0x20 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }) {
                bytes.append(contentsOf: text)
            } else {
                for byte in text { escaped(byte) }
            }
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

    /// Writes a quoted UUID in upper case, which is how `UUID` encodes itself.
    package mutating func uuid(_ id: UUID) {
        bytes.append(UInt8(ascii: "\""))
        Hexadecimal.append(id, .upper, to: &bytes)
        bytes.append(UInt8(ascii: "\""))
    }

    package mutating func integer(_ value: Int64) {
        guard value >= 0 else {
            bytes.append(contentsOf: Array(String(value).utf8))
            return
        }
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
            var rest = value
            var place = 20
            repeat {
                place -= 1
                digits[place] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
                rest /= 10
            } while rest > 0
            bytes.append(contentsOf: UnsafeMutableBufferPointer(rebasing: digits[place...]))
        }
    }

    /// JSON has no word for infinities and NaN; no JSON text can have brought one in.
    package mutating func double(_ value: Double) {
        if let whole = Int64(exactly: value) {
            integer(whole)
        } else {
            bytes.append(contentsOf: Array((value.isFinite ? value.description : "null").utf8))
        }
    }
}

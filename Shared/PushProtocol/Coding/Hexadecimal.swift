package import FoundationEssentials

/// Hexadecimal digits and the ids that are written in them, byte by byte.
package enum Hexadecimal {
    /// What `digit` counts, in either case; `nil` for anything else.
    static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    /// A UUID in its canonical form (RFC 9562 §4), in either case.
    static func uuid(_ text: UnsafeBufferPointer<UInt8>) -> UUID? {
        guard text.count == 36 else { return nil }
        var id: uuid_t = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        let isValid = withUnsafeMutableBytes(of: &id) { bytes in
            var place = 0
            for index in 0..<16 {
                if index == 4 || index == 6 || index == 8 || index == 10 {
                    guard text[place] == UInt8(ascii: "-") else { return false }
                    place += 1
                }
                guard let high = value(text[place]), let low = value(text[place + 1]) else { return false }
                bytes[index] = high << 4 | low
                place += 2
            }
            return true
        }
        return isValid ? UUID(uuid: id) : nil
    }

    package enum Case: Sendable { case lower, upper }

    /// Appends `id` in its canonical form.
    package static func append(_ id: UUID, _ letters: Case, to text: inout [UInt8]) {
        let digits = letters == .lower ? lower : upper
        withUnsafeBytes(of: id.uuid) { bytes in
            withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 36) { buffer in
                var place = 0
                for index in 0..<16 {
                    if index == 4 || index == 6 || index == 8 || index == 10 {
                        buffer[place] = UInt8(ascii: "-")
                        place += 1
                    }
                    buffer[place] = digits.utf8Start[Int(bytes[index] >> 4)]
                    buffer[place + 1] = digits.utf8Start[Int(bytes[index] & 15)]
                    place += 2
                }
                text.append(contentsOf: buffer)
            }
        }
    }

    private static let lower: StaticString = "0123456789abcdef"
    private static let upper: StaticString = "0123456789ABCDEF"
}

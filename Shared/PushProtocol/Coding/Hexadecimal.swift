package import FoundationEssentials

/// Reads and writes hexadecimal digits and UUIDs without Foundation's formatters.
package enum Hexadecimal {
    /// The value of a digit in either case; `nil` for any other byte.
    package static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    /// Reads a UUID in its canonical form (RFC 9562 §4), in either case.
    package static func uuid(_ text: UnsafeBufferPointer<UInt8>) -> UUID? {
        let dash = UInt8(ascii: "-")
        guard text.count == 36, text[8] == dash, text[13] == dash, text[18] == dash, text[23] == dash else {
            return nil
        }
        let text = UnsafeRawBufferPointer(text)
        func eight(_ position: Int) -> UInt64 {
            UInt64(bigEndian: text.loadUnaligned(fromByteOffset: position, as: UInt64.self))
        }
        func four(_ position: Int) -> UInt64 {
            UInt64(UInt32(bigEndian: text.loadUnaligned(fromByteOffset: position, as: UInt32.self)))
        }
        // 8-4-4-4-12
        guard let first = word(eight(0)), let second = word(four(9) << 32 | four(14)),
            let third = word(four(19) << 32 | four(24)), let fourth = word(eight(28))
        else { return nil }
        // Reinterprets the bytes. `UUID.init(uuid:)` takes 57 instructions.
        return unsafeBitCast((first.bigEndian, second.bigEndian, third.bigEndian, fourth.bigEndian), to: UUID.self)
    }

    /// Reads a UUID in its canonical form, in lower case only.
    package static func lowercaseUUID(_ text: String) -> UUID? {
        var text = text
        return text.withUTF8 { text in
            guard let id = uuid(text) else { return nil }
            // Upper-case letters are the only accepted bytes with bit 0x20 clear.
            for byte in text where byte & 0x20 == 0 { return nil }
            return id
        }
    }

    /// The value of eight digits at once, first digit in the highest byte; `nil` if a byte is not a digit.
    private static func word(_ digits: UInt64) -> UInt32? {
        let ones: UInt64 = 0x0101_0101_0101_0101, highBits = ones &* 0x80
        guard digits & highBits == 0 else { return nil }
        // Sets the high bit of each byte that is at least `least`. Bytes must be below 0x80.
        func from(_ least: UInt8, _ bytes: UInt64) -> UInt64 { bytes &+ ones &* UInt64(0x80 - least) }
        let lower = digits | ones &* 0x20
        let areDigits = from(UInt8(ascii: "0"), digits) & ~from(UInt8(ascii: "9") + 1, digits) & highBits
        let areLetters = from(UInt8(ascii: "a"), lower) & ~from(UInt8(ascii: "f") + 1, lower) & highBits
        guard areDigits | areLetters == highBits else { return nil }
        var nibbles = (digits & (ones &* 0x0f)) &+ (areLetters >> 7) &* 9
        nibbles = (nibbles | nibbles >> 4) & 0x00ff_00ff_00ff_00ff
        nibbles = (nibbles | nibbles >> 8) & 0x0000_ffff_0000_ffff
        return UInt32(truncatingIfNeeded: nibbles | nibbles >> 16)
    }

    /// Two lower-case digits a byte.
    ///
    /// Not generic: other modules would call it unspecialized, at four times the cost of opening a stored token.
    package static func text(of bytes: UnsafeRawBufferPointer) -> String {
        String(unsafeUninitializedCapacity: 2 * bytes.count) { text in
            var position = 0
            for byte in bytes {
                text[position] = lower.utf8Start[Int(byte >> 4)]
                text[position + 1] = lower.utf8Start[Int(byte & 15)]
                position += 2
            }
            return position
        }
    }

    /// The 16 lower-case digits of `word`.
    static func text(of word: UInt64) -> String {
        withUnsafeBytes(of: word.bigEndian) { text(of: $0) }
    }

    /// The number of at most 16 digits in lower case; `nil` for another byte.
    static func number(_ digits: some Sequence<UInt8>) -> UInt64? {
        var number: UInt64 = 0
        for digit in digits {
            // Upper-case letters are the only digits with bit 0x20 clear.
            guard digit & 0x20 != 0, let value = value(digit) else { return nil }
            number = number << 4 | UInt64(value)
        }
        return number
    }

    package enum Case: Sendable { case lower, upper }

    /// Returns `text` in lower case; `nil` unless it has hexadecimal digits only.
    static func lowerCaseDigits(_ text: String) -> String? {
        var text = text
        let (others, upper) = text.withUTF8 { text in
            // A loop without branches is vectorized.
            var others: UInt8 = 0
            var upper: UInt8 = 0
            for byte in text {
                let isDigit = byte &- UInt8(ascii: "0") < 10
                let isLetter = (byte | 0x20) &- UInt8(ascii: "a") < 6
                others |= isDigit || isLetter ? 0 : 1
                // Decimal digits have bit 0x20 too.
                upper |= ~byte & 0x20
            }
            return (others, upper)
        }
        guard others == 0 else { return nil }
        return upper == 0 ? text : text.lowercased()
    }

    /// The canonical form of `id`.
    package static func text(of id: UUID, _ letters: Case = .lower) -> String {
        String(unsafeUninitializedCapacity: 36) { text in
            write(id, letters, to: text)
            return 36
        }
    }

    /// Appends the canonical form of `id`.
    package static func append(_ id: UUID, _ letters: Case, to text: inout [UInt8]) {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 36) { buffer in
            write(id, letters, to: buffer)
            text.append(contentsOf: buffer)
        }
    }

    /// Writes the 36 bytes of the canonical form of `id`.
    static func write(_ id: UUID, _ letters: Case, to text: UnsafeMutableBufferPointer<UInt8>) {
        precondition(text.count >= 36)
        let text = UnsafeMutableRawBufferPointer(text)
        withUnsafeBytes(of: id.uuid) { bytes in
            func eight(_ index: Int) -> UInt64 {
                digits(UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 4 * index, as: UInt32.self)), letters)
            }
            // 8-4-4-4-12
            let (second, third) = (eight(1), eight(2))
            text.storeBytes(of: eight(0).bigEndian, as: UInt64.self)
            text.storeBytes(of: UInt32(second >> 32).bigEndian, toByteOffset: 9, as: UInt32.self)
            text.storeBytes(of: UInt32(truncatingIfNeeded: second).bigEndian, toByteOffset: 14, as: UInt32.self)
            text.storeBytes(of: UInt32(third >> 32).bigEndian, toByteOffset: 19, as: UInt32.self)
            text.storeBytes(of: UInt32(truncatingIfNeeded: third).bigEndian, toByteOffset: 24, as: UInt32.self)
            text.storeBytes(of: eight(3).bigEndian, toByteOffset: 28, as: UInt64.self)
            let dash = UInt8(ascii: "-")
            (text[8], text[13], text[18], text[23]) = (dash, dash, dash, dash)
        }
    }

    /// Writes eight digits at once, highest nibble in the highest byte.
    private static func digits(_ word: UInt32, _ letters: Case) -> UInt64 {
        var nibbles = UInt64(word)
        nibbles = (nibbles << 16 | nibbles) & 0x0000_ffff_0000_ffff
        nibbles = (nibbles << 8 | nibbles) & 0x00ff_00ff_00ff_00ff
        nibbles = (nibbles << 4 | nibbles) & 0x0f0f_0f0f_0f0f_0f0f
        // Is 1 in each byte that is a letter: adding 6 to 10 or more carries into the upper half.
        let areLetters = (nibbles &+ 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
        let gap = UInt64(UInt8(ascii: letters == .lower ? "a" : "A") - UInt8(ascii: "9") - 1)
        return nibbles &+ 0x3030_3030_3030_3030 &+ areLetters &* gap
    }

    private static let lower: StaticString = "0123456789abcdef"
}

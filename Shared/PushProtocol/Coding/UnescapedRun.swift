/// The leading part of a string without quotes, backslashes and control characters. Scans eight bytes at a time.
struct UnescapedRun {
    private(set) var end: Int
    private(set) var isASCII = true

    init(in bytes: UnsafeBufferPointer<UInt8>, from start: Int) {
        end = start
        let memory = UnsafeRawBufferPointer(bytes)
        var seen: UInt64 = 0
        while end + 8 <= memory.count {
            let word = UInt64(littleEndian: memory.loadUnaligned(fromByteOffset: end, as: UInt64.self))
            let stops = Self.stops(in: word)
            if stops != 0 {
                let bits = stops.trailingZeroBitCount & ~7
                seen |= word & ((1 << bits) - 1)
                end += bits / 8
                isASCII = seen & Self.highBits == 0
                return
            }
            seen |= word
            end += 8
        }
        while end < bytes.count, !Self.isStop(bytes[end]) {
            seen |= UInt64(bytes[end])
            end += 1
        }
        isASCII = seen & Self.highBits == 0
    }

    private static let highBits: UInt64 = 0x8080_8080_8080_8080
    private static let ones: UInt64 = 0x0101_0101_0101_0101

    /// The high bit of each byte that ends the run. Bits above the lowest set one may be false positives.
    private static func stops(in word: UInt64) -> UInt64 {
        let quote = word ^ (ones &* UInt64(UInt8(ascii: "\"")))
        let backslash = word ^ (ones &* UInt64(UInt8(ascii: "\\")))
        let isQuote = (quote &- ones) & ~quote
        let isBackslash = (backslash &- ones) & ~backslash
        let isControl = (word &- ones &* 0x20) & ~word
        return (isQuote | isBackslash | isControl) & highBits
    }

    static func isStop(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") || byte < 0x20
    }

    /// The run's `bytes` as a string.
    func text(_ bytes: UnsafeBufferPointer<UInt8>) throws(JSONReader.Unreadable) -> String {
        // Decoding ASCII costs a tenth of validating UTF-8.
        if isASCII { return String(decoding: bytes, as: UTF8.self) }
        guard let text = String(validating: bytes, as: UTF8.self) else { throw JSONReader.Unreadable() }
        return text
    }
}

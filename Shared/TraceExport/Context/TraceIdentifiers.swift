/// The id of a trace: 16 bytes, not all zero (W3C Trace Context Level 1, §3.2.2.3).
package struct TraceID: Hashable, Sendable {
    package let high: UInt64
    package let low: UInt64

    /// Returns `nil` for the invalid id with all bits zero.
    package init?(high: UInt64, low: UInt64) {
        guard high != 0 || low != 0 else { return nil }
        self.high = high
        self.low = low
    }

    /// A random id.
    package static func random(using generator: inout some RandomNumberGenerator) -> TraceID {
        while true {
            if let id = TraceID(high: generator.next(), low: generator.next()) { return id }
        }
    }

    /// 32 lower-case hexadecimal digits.
    package var text: String { TraceHex.text(high) + TraceHex.text(low) }
}

/// The id of a span: 8 bytes, not all zero (W3C Trace Context Level 1, §3.2.2.4).
package struct SpanID: Hashable, Sendable {
    package let value: UInt64

    /// Returns `nil` for the invalid id with all bits zero.
    package init?(_ value: UInt64) {
        guard value != 0 else { return nil }
        self.value = value
    }

    /// A random id.
    package static func random(using generator: inout some RandomNumberGenerator) -> SpanID {
        while true {
            if let id = SpanID(generator.next()) { return id }
        }
    }

    /// 16 lower-case hexadecimal digits.
    package var text: String { TraceHex.text(value) }
}

/// Fixed-width lower-case hexadecimal numbers.
enum TraceHex {
    private static let digits = Array("0123456789abcdef".utf8)

    /// The 16 digits of `value`.
    static func text(_ value: UInt64) -> String {
        String(unsafeUninitializedCapacity: 16) { text in
            for position in 0..<16 { text[position] = digits[Int((value >> (60 - 4 * UInt64(position))) & 15)] }
            return 16
        }
    }

    /// The number that at most 16 digits represent; `nil` for an upper-case digit or another byte.
    static func value(_ digits: some Sequence<UInt8>) -> UInt64? {
        var value: UInt64 = 0
        for digit in digits {
            switch digit {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = value << 4 | UInt64(digit - UInt8(ascii: "0"))
            case UInt8(ascii: "a")...UInt8(ascii: "f"): value = value << 4 | UInt64(digit - UInt8(ascii: "a") + 10)
            default: return nil
            }
        }
        return value
    }
}

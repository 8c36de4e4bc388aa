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

    /// - Parameter bits: returns 64 random bits. A closure, because ThreadSanitizer ends at an `inout` generator without
    ///   stored properties, as the system's is.
    package static func random(bits: () -> UInt64 = SpanID.systemBits) -> TraceID {
        while true {
            if let id = TraceID(high: bits(), low: bits()) { return id }
        }
    }

    /// 32 lower-case hexadecimal digits.
    package var text: String { Hexadecimal.text(of: high) + Hexadecimal.text(of: low) }
}

/// The id of a span: 8 bytes, not all zero (W3C Trace Context Level 1, §3.2.2.4).
package struct SpanID: Hashable, Sendable {
    package let value: UInt64

    /// Returns `nil` for the invalid id with all bits zero.
    package init?(_ value: UInt64) {
        guard value != 0 else { return nil }
        self.value = value
    }

    /// - Parameter bits: returns 64 random bits.
    package static func random(bits: () -> UInt64 = systemBits) -> SpanID {
        while true {
            if let id = SpanID(bits()) { return id }
        }
    }

    package static func systemBits() -> UInt64 { .random(in: .min ... .max) }

    /// 16 lower-case hexadecimal digits.
    package var text: String { Hexadecimal.text(of: value) }
}

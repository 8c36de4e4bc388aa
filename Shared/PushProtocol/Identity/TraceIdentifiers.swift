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

    package static func random(using generator: inout some RandomNumberGenerator) -> TraceID {
        while true {
            if let id = TraceID(high: generator.next(), low: generator.next()) { return id }
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

    package static func random(using generator: inout some RandomNumberGenerator) -> SpanID {
        while true {
            if let id = SpanID(generator.next()) { return id }
        }
    }

    /// 16 lower-case hexadecimal digits.
    package var text: String { Hexadecimal.text(of: value) }
}

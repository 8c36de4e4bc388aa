/// The value of a `traceparent`: the trace, the parent span, and whether the trace is sampled (W3C Trace Context Level
/// 1, §3.2).
package struct TraceParent: Hashable, Sendable {
    package let trace: TraceID
    package let span: SpanID
    package let isSampled: Bool

    package init(trace: TraceID, span: SpanID, isSampled: Bool) {
        self.trace = trace
        self.span = span
        self.isSampled = isSampled
    }

    /// The length of version 00: `00-`, 32 digits, `-`, 16 digits, `-`, 2 digits.
    private static let length = 55

    /// Reads a value. Returns `nil` for an invalid one, which the specification requires to ignore (§4.3).
    ///
    /// Version 00 has exactly 55 characters. A higher version may continue with `-` and further text, and is read as
    /// version 00 (§3.2.4). Version ff, upper-case digits and ids with all bits zero are invalid.
    package init?(_ text: some StringProtocol) {
        let bytes = Array(text.utf8.prefix(Self.length + 1))
        let dash = UInt8(ascii: "-")
        guard bytes.count >= Self.length, bytes[2] == dash, bytes[35] == dash, bytes[52] == dash,
            let version = Hexadecimal.number(bytes[0..<2]), version != 0xff,
            let high = Hexadecimal.number(bytes[3..<19]), let low = Hexadecimal.number(bytes[19..<35]),
            let parent = Hexadecimal.number(bytes[36..<52]), let flags = Hexadecimal.number(bytes[53..<55]),
            let trace = TraceID(high: high, low: low), let span = SpanID(parent)
        else { return nil }
        if bytes.count > Self.length { guard version > 0, bytes[Self.length] == dash else { return nil } }
        self.init(trace: trace, span: span, isSampled: flags & 1 == 1)
    }

    /// The value in version 00. Other flags than *sampled* are zero, as version 00 requires.
    package var text: String { "00-\(trace.text)-\(span.text)-0\(isSampled ? 1 : 0)" }
}

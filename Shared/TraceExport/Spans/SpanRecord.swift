package import PushProtocol
package import Tracing

/// A finished span.
package struct SpanRecord: Sendable {
    package var trace: TraceID
    package var id: SpanID
    package var parent: SpanID?
    package var traceState: String?
    package var name: String
    package var kind: SpanKind
    /// Nanoseconds since 1970.
    package var start: UInt64
    package var end: UInt64
    package var attributes: SpanAttributes
    package var events: [SpanEvent]
    package var links: [SpanRecordLink]
    package var status: SpanStatus?
    package var isSampled: Bool
}

/// A link of a span to another.
package struct SpanRecordLink: Sendable {
    package var target: TraceParent
    package var attributes: SpanAttributes
}

package import PushProtocol
package import Tracing
import Synchronization

/// A span of this process. Also recorded if its trace is not sampled, because it may fail.
package final class RecordedSpan: Span {
    /// The most links of a span (OpenTelemetry's default `LinkCountLimit`). Further ones are dropped.
    static let maximumLinks = 128

    private struct State {
        var name: String
        var attributes: SpanAttributes = [:]
        var events: [SpanEvent] = []
        var links: [SpanRecordLink] = []
        var status: SpanStatus?
        var hasEnded = false
    }

    package let trace: TraceID
    package let id: SpanID
    let parent: SpanID?
    let traceState: String?
    /// The decision at the head of the trace.
    package let isSampled: Bool
    private let kind: SpanKind
    private let start: UInt64
    private let base: InstrumentationContext
    private let finish: @Sendable (SpanRecord) -> Void
    private let state: Mutex<State>

    /// - Parameters:
    ///   - base: the parent's context.
    ///   - finish: called once, at the end of a span that is exported.
    init(
        _ name: String, trace: TraceID, id: SpanID, parent: SpanID?, traceState: String?, isSampled: Bool,
        kind: SpanKind, start: UInt64, base: InstrumentationContext, finish: @escaping @Sendable (SpanRecord) -> Void
    ) {
        self.trace = trace
        self.id = id
        self.parent = parent
        self.traceState = traceState
        self.isSampled = isSampled
        self.kind = kind
        self.start = start
        self.base = base
        self.finish = finish
        state = Mutex(State(name: name))
    }

    /// The context of children, and of messages that this span causes.
    package var context: InstrumentationContext {
        var context = base
        context.span = .local(self)
        return context
    }

    /// Whether the span is exported at its end, as known so far: its trace is sampled, or it failed.
    var isExported: Bool { isSampled || state.withLock { $0.status?.code == .error } }

    package var operationName: String {
        get { state.withLock { $0.name } }
        set { update { $0.name = newValue } }
    }

    package var attributes: SpanAttributes {
        get { state.withLock { $0.attributes } }
        set { update { $0.attributes = newValue } }
    }

    package var isRecording: Bool { state.withLock { !$0.hasEnded } }

    package func setStatus(_ status: SpanStatus) { update { $0.status = status } }

    package func addEvent(_ event: SpanEvent) { update { $0.events.append(event) } }

    /// Records the error's type. Its description may contain user data.
    package func recordError<Instant: TracerInstant>(
        _ error: any Error, attributes: SpanAttributes, at instant: @autoclosure () -> Instant
    ) {
        var attributes = attributes
        attributes["exception.type"] = "\(type(of: error))"
        let event = SpanEvent(name: "exception", at: instant(), attributes: attributes)
        update { $0.events.append(event) }
    }

    /// Adds a link, unless its context is of another tracer.
    package func addLink(_ link: SpanLink) {
        guard let target = link.context.span?.traceParent else { return }
        update { state in
            guard state.links.count < Self.maximumLinks else { return }
            state.links.append(SpanRecordLink(target: target, attributes: link.attributes))
        }
    }

    package func end<Instant: TracerInstant>(at instant: @autoclosure () -> Instant) {
        let end = instant().nanosecondsSinceEpoch
        let ended = state.withLock { state -> State? in
            guard !state.hasEnded else { return nil }
            state.hasEnded = true
            return state
        }
        guard let ended, isSampled || ended.status?.code == .error else { return }
        finish(
            SpanRecord(
                trace: trace, id: id, parent: parent, traceState: traceState, name: ended.name, kind: kind,
                start: start, end: max(start, end), attributes: ended.attributes, events: ended.events,
                links: ended.links, status: ended.status, isSampled: isSampled))
    }

    /// Changes the span, unless it has ended.
    private func update(_ change: (inout State) -> Void) {
        state.withLock { state in
            if !state.hasEnded { change(&state) }
        }
    }
}

import PushProtocol
import Tracing

/// The span of a context: one of this process, or the upstream's.
enum CurrentSpan: Sendable {
    case local(RecordedSpan)
    case remote(TraceParent, state: String?)

    /// The `traceparent` for a message or request that this span causes.
    ///
    /// A failed span counts as sampled, so that the next stages record what followed from the failure.
    var traceParent: TraceParent {
        switch self {
        case .local(let span): TraceParent(trace: span.trace, span: span.id, isSampled: span.isExported)
        case .remote(let parent, _): parent
        }
    }

    var state: String? {
        switch self {
        case .local(let span): span.traceState
        case .remote(_, let state): state
        }
    }
}

private enum CurrentSpanKey: InstrumentationContextKey {
    typealias Value = CurrentSpan
    static var nameOverride: String? { "heliograph-span" }
}

extension InstrumentationContext {
    var span: CurrentSpan? {
        get { self[CurrentSpanKey.self] }
        set { self[CurrentSpanKey.self] = newValue }
    }
}

import PushProtocol
package import Tracing

/// A tracer with head sampling, which gives finished spans to an exporter. A failed span is exported although its trace
/// is not sampled.
///
/// Passes the context on in W3C Trace Context's `traceparent` and `tracestate`.
package struct SpanTracer: Tracer {
    static let traceparent = "traceparent"
    static let tracestate = "tracestate"

    private let sampler: TraceSampler
    private let finish: @Sendable (SpanRecord) -> Void

    /// - Parameter finish: takes each span that is exported. Must be fast, and may be called by any thread.
    package init(sampler: TraceSampler, finish: @escaping @Sendable (SpanRecord) -> Void) {
        self.sampler = sampler
        self.finish = finish
    }

    package func startSpan<Instant: TracerInstant>(
        _ operationName: String, context: @autoclosure () -> InstrumentationContext, ofKind kind: SpanKind,
        at instant: @autoclosure () -> Instant, function: String, file fileID: String, line: UInt
    ) -> RecordedSpan {
        let context = context()
        let (trace, parent, isSampled): (TraceID, SpanID?, Bool)
        switch context.span {
        // The decision at the head of the trace, although a failed parent is exported.
        case .local(let span): (trace, parent, isSampled) = (span.trace, span.id, span.isSampled)
        case .remote(let span, _): (trace, parent, isSampled) = (span.trace, span.span, span.isSampled)
        case nil:
            trace = TraceID.random()
            (parent, isSampled) = (nil, sampler.isSampled(trace))
        }
        return RecordedSpan(
            operationName, trace: trace, id: SpanID.random(), parent: parent,
            traceState: context.span?.state, isSampled: isSampled, kind: kind,
            start: instant().nanosecondsSinceEpoch, base: context, finish: finish)
    }

    package func startAnySpan<Instant: TracerInstant>(
        _ operationName: String, context: @autoclosure () -> InstrumentationContext, ofKind kind: SpanKind,
        at instant: @autoclosure () -> Instant, function: String, file fileID: String, line: UInt
    ) -> any Tracing.Span {
        startSpan(
            operationName, context: context(), ofKind: kind, at: instant(), function: function, file: fileID,
            line: line)
    }

    /// Does nothing: the exporter sends at its pace, and at shutdown.
    package func forceFlush() {}

    package func extract<Carrier, Extract: Extractor>(
        _ carrier: Carrier, into context: inout InstrumentationContext, using extractor: Extract
    ) where Extract.Carrier == Carrier {
        guard let parent = extractor.extract(key: Self.traceparent, from: carrier).flatMap({ TraceParent($0) }) else {
            return
        }
        let state = TraceState.valid(extractor.extract(key: Self.tracestate, from: carrier))
        context.span = .remote(parent, state: state)
    }

    package func inject<Carrier, Inject: Injector>(
        _ context: InstrumentationContext, into carrier: inout Carrier, using injector: Inject
    ) where Inject.Carrier == Carrier {
        guard let span = context.span else { return }
        injector.inject(span.traceParent.text, forKey: Self.traceparent, into: &carrier)
        if let state = span.state { injector.inject(state, forKey: Self.tracestate, into: &carrier) }
    }
}

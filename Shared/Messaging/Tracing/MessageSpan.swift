internal import Tracing
package import PushProtocol
internal import Synchronization

/// The span of one message in this stage: from its reading to its settlement. Exists only while tracing is on.
///
/// Its attributes follow OpenTelemetry's messaging conventions. No attribute has a device token, a user or content.
package final class MessageSpan: Sendable {
    /// The value of an attribute.
    package enum Value: Hashable, Sendable {
        case text(String)
        case number(Int)
        case texts([String])
    }

    private let span: any Span
    private let tracer: any Tracer
    private let hasEnded = Mutex(false)

    init(_ span: any Span, tracer: any Tracer) {
        self.span = span
        self.tracer = tracer
    }

    /// The headers of a message that this one causes: W3C `traceparent` and `tracestate`.
    package var headers: [String: String] {
        var headers: [String: String] = [:]
        tracer.inject(span.context, into: &headers, using: TextHeaders())
        return headers
    }

    /// The `traceparent` of a message that this one causes.
    package var traceparent: String? { headers[HeaderName.traceparent] }

    package func set(_ name: String, _ value: Value) {
        span.updateAttributes { $0.set(name, value: value.attribute) }
    }

    /// Sets the attributes of an event: OpenTelemetry's conventions for CloudEvents.
    package func describe(_ event: DomainEvent) {
        set("cloudevents.event_id", .text(event.id))
        set("cloudevents.event_source", .text(event.source))
        set("cloudevents.event_type", .text(event.type))
        set("heliograph.app", .text(event.app.rawValue))
    }

    /// Marks the message as failed, so that its span is exported although its trace is not sampled. Messages that it
    /// causes are sampled from now on.
    ///
    /// - Parameter type: a stable word of few values, such as a reason code.
    package func fail(_ type: String) {
        span.updateAttributes { $0.set("error.type", value: .string(type)) }
        span.setStatus(SpanStatus(code: .error, message: type))
    }

    /// Adds a finished span of a request that was sent because of the message.
    ///
    /// - Parameters:
    ///   - start: nanoseconds since 1970.
    ///   - failure: the type of the failure; `nil` for a success.
    package func addRequest(
        _ name: String, from start: UInt64, to end: UInt64 = DefaultTracerClock.now.nanosecondsSinceEpoch,
        _ attributes: [String: Value], failure: String? = nil
    ) {
        let child = tracer.startSpan(
            name, context: span.context, ofKind: .client,
            at: DefaultTracerClock.Timestamp(nanosecondsSinceEpoch: start))
        child.updateAttributes { all in
            for (name, value) in attributes { all.set(name, value: value.attribute) }
            if let failure { all.set("error.type", value: .string(failure)) }
        }
        if let failure { child.setStatus(SpanStatus(code: .error, message: failure)) }
        child.end(at: DefaultTracerClock.Timestamp(nanosecondsSinceEpoch: end))
    }

    /// The present time for ``addRequest(_:from:to:_:failure:)``, in nanoseconds since 1970.
    package static var now: UInt64 { DefaultTracerClock.now.nanosecondsSinceEpoch }

    /// Ends the span. Only the first call counts. The stage does it for the messages that it handles.
    package func end() {
        let isFirst = hasEnded.withLock { hasEnded in
            defer { hasEnded = true }
            return !hasEnded
        }
        if isFirst { span.end() }
    }

    /// Runs work that several messages share in one span: a child of the first sampled message. The spans of the other
    /// messages and the shared one are linked in both directions.
    ///
    /// Without spans it only runs the work.
    ///
    /// - Parameter isRequest: whether the work is mainly a request to another system.
    package static func share<Result>(
        _ spans: [MessageSpan], _ name: String, isRequest: Bool = false, _ attributes: [String: Value] = [:],
        _ work: () async throws -> Result
    ) async rethrows -> Result {
        guard let parent = spans.first(where: \.isSampled) ?? spans.first else { return try await work() }
        let shared = parent.tracer.startSpan(
            name, context: parent.span.context, ofKind: isRequest ? .client : .internal)
        shared.updateAttributes { all in
            for (name, value) in attributes { all.set(name, value: value.attribute) }
            if spans.count > 1 { all.set("messaging.batch.message_count", value: .int(Int64(spans.count))) }
        }
        for other in spans where other !== parent {
            shared.addLink(SpanLink(context: other.span.context, attributes: [:]))
            other.span.addLink(SpanLink(context: shared.context, attributes: [:]))
        }
        defer { shared.end() }
        do {
            return try await work()
        } catch {
            shared.updateAttributes { $0.set("error.type", value: .string("\(type(of: error))")) }
            shared.setStatus(SpanStatus(code: .error))
            throw error
        }
    }

    /// Whether the messages that it causes are sampled.
    package var isSampled: Bool { traceparent?.hasSuffix("1") ?? false }
}

extension MessageSpan.Value {
    fileprivate var attribute: SpanAttribute {
        switch self {
        case .text(let text): .string(text)
        case .number(let number): .int64(Int64(number))
        case .texts(let texts): .stringArray(texts)
        }
    }
}

extension MessageSpan.Value: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral {
    package init(stringLiteral value: String) { self = .text(value) }
    package init(integerLiteral value: Int) { self = .number(value) }
}

/// Reads and writes headers for a tracer.
struct TextHeaders: Extractor, Injector {
    func extract(key: String, from carrier: [String: String]) -> String? { carrier[key] }

    func inject(_ value: String, forKey key: String, into carrier: inout [String: String]) { carrier[key] = value }
}

extension [MessageSpan] {
    /// The spans of a batch; none without tracing.
    package init<Message>(of batch: [Delivery<Message>]) { self = batch.compactMap(\.span) }
}

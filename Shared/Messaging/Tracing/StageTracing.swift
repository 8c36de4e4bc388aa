internal import AMQP
internal import PushProtocol
internal import Tracing

/// Creates the spans of a stage's messages.
///
/// The parent is the span in the header `traceparent`. An event may have it in its attribute instead (CloudEvents
/// Distributed Tracing extension), and a trace begins at an event without one. Other messages without a parent, such as
/// census reports, get no span.
struct StageTracing: Sendable {
    let tracer: any Tracer

    /// The span of a message; `nil` for a message without a trace.
    ///
    /// - Parameter attribute: the `traceparent` in the message's body.
    func span(of inbound: Inbound, attribute: String?) -> MessageSpan? {
        let headers = inbound.delivery.properties.headers
        var context = context(Self.text(headers))
        if context.isEmpty, let attribute { context = self.context([HeaderName.traceparent: attribute]) }
        guard !context.isEmpty || inbound.queue.hasEvents else { return nil }
        let span = tracer.startSpan("process \(inbound.queue.name)", context: context, ofKind: .consumer)
        span.attributes = Self.attributes(of: inbound)
        for link in TraceLinks.traceparents(in: headers) {
            let target = self.context([HeaderName.traceparent: link])
            if !target.isEmpty { span.addLink(SpanLink(context: target, attributes: [:])) }
        }
        return MessageSpan(span, tracer: tracer)
    }

    private func context(_ headers: [String: String]) -> InstrumentationContext {
        var context = InstrumentationContext.topLevel
        tracer.extract(headers, into: &context, using: TextHeaders())
        return context
    }

    private static func text(_ headers: [String: AMQPValue]) -> [String: String] {
        var found: [String: String] = [:]
        for name in [HeaderName.traceparent, HeaderName.tracestate] { found[name] = headers[name]?.text }
        return found
    }

    /// The attributes of OpenTelemetry's conventions for RabbitMQ.
    private static func attributes(of inbound: Inbound) -> SpanAttributes {
        let properties = inbound.delivery.properties
        var attributes: SpanAttributes = [
            "messaging.system": "rabbitmq", "messaging.operation.name": "process",
            "messaging.operation.type": "process",
            "messaging.destination.name": "\(inbound.exchange):\(inbound.routingKey):\(inbound.queue.name)",
            "messaging.rabbitmq.destination.routing_key": .string(inbound.routingKey),
            "messaging.message.body.size": .int64(Int64(inbound.body.count)),
            "heliograph.attempt": .int64(Int64(inbound.attempt)),
        ]
        if let id = inbound.messageID { attributes.set("messaging.message.id", value: .string(id)) }
        if let id = properties.correlationID {
            attributes.set("messaging.message.conversation_id", value: .string(id))
        }
        if let app = inbound.queue.app { attributes.set("heliograph.app", value: .string(app.rawValue)) }
        return attributes
    }
}

extension StageTracing {
    /// Ends the spans of messages with verdicts. A retry and a dead letter are failures.
    func end(_ messages: [any ErasedDelivery], _ verdicts: [Verdict]) {
        for (message, verdict) in zip(messages, verdicts) {
            guard let span = message.span else { continue }
            span.set("heliograph.disposition", .text(verdict.disposition.label))
            switch verdict.disposition {
            case .done: break
            case .retry(_, let reason), .deadLetter(let reason):
                span.set("heliograph.reason", .text(reason.code))
                span.fail(reason.code)
            case .postpone(_, let reason), .discard(let reason): span.set("heliograph.reason", .text(reason.code))
            }
            span.end()
        }
    }

    /// Ends the span of a message that cannot be handled.
    func end(_ span: MessageSpan?, _ disposition: ResolvedDisposition) {
        guard let span else { return }
        span.set("heliograph.disposition", .text(disposition.label))
        if let reason = disposition.reason {
            span.set("heliograph.reason", .text(reason.code))
            span.fail(reason.code)
        }
        span.end()
    }

    /// Ends the spans of messages that go back to the queue, or are held by an outage.
    func end(_ messages: [any ErasedDelivery], unsettledBecause reason: String) {
        for message in messages {
            message.span?.set("heliograph.disposition", .text(reason))
            message.span?.end()
        }
    }
}

extension WorkQueue {
    /// Whether its messages are events of upstream services. An event without a trace begins one, and has its id in the
    /// body.
    var hasEvents: Bool {
        switch self {
        case .rulesEvents, .rulesAppEvents: true
        case .rulesOutcomes, .rulesErasures, .rulesCensus, .rulesChannels, .apnsSenderChannels,
            .registryNotifications, .registryAppNotifications, .registryDevices, .registryAppDevices,
            .registryCampaigns,
            .senderPushes, .feedbackOutcomes, .feedbackErasures, .webhookReports:
            false
        }
    }
}

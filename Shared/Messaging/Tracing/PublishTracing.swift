package import AMQP
internal import PushProtocol
package import Tracing

/// Creates the spans of messages that a process publishes on behalf of an upstream, outside of a stage.
package struct PublishTracing: Sendable {
    private let tracer: any Tracer

    package init(_ tracer: any Tracer) { self.tracer = tracer }

    /// The span of a publish. Its context replaces that in the headers of `message`.
    ///
    /// - Parameter parent: the upstream's `traceparent`; a trace begins here without a valid one.
    package func span(of message: inout AMQPMessage, parent: String?) -> MessageSpan {
        var context = InstrumentationContext.topLevel
        if let parent {
            tracer.extract([HeaderName.traceparent: parent], into: &context, using: TextHeaders())
        }
        let span = tracer.startSpan("publish \(message.exchange)", context: context, ofKind: .producer)
        span.attributes = [
            "messaging.system": "rabbitmq", "messaging.operation.name": "publish", "messaging.operation.type": "send",
            "messaging.destination.name": "\(message.exchange):\(message.routingKey)",
            "messaging.rabbitmq.destination.routing_key": .string(message.routingKey),
            "messaging.message.body.size": .int64(Int64(message.body.count)),
        ]
        if let id = message.properties.messageID {
            span.updateAttributes { $0.set("messaging.message.id", value: .string(id)) }
        }
        let messageSpan = MessageSpan(span, tracer: tracer)
        message.properties.headers.merge(messageSpan.headers.mapValues(AMQPValue.text)) { $1 }
        return messageSpan
    }
}

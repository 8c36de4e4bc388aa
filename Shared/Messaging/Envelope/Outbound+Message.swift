package import AMQP
internal import PushProtocol

extension Outbound {
    /// The AMQP message, for publishers that are not a stage.
    package func message(from service: String) -> AMQPMessage {
        AMQPMessage(
            exchange: exchange.name, routingKey: routingKey,
            properties: AMQPProperties(
                contentType: "application/json", messageID: messageID, correlationID: correlationID, type: type,
                appID: service, persistent: true, timestamp: Timestamp.now.seconds,
                headers: traceparent.map { [HeaderName.traceparent: .text($0)] } ?? [:]),
            body: body)
    }
}

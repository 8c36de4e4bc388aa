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
                headers: headers),
            body: body)
    }

    private var headers: [String: AMQPValue] {
        var headers: [String: AMQPValue] = [:]
        if let traceparent { headers[HeaderName.traceparent] = .text(traceparent) }
        if let arrivedAt { headers[HeaderName.arrived] = .int(arrivedAt.milliseconds) }
        return headers
    }
}

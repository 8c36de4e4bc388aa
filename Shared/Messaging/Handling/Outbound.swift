internal import FoundationEssentials
package import PushProtocol

/// A message that a handler wants published.
package struct Outbound: Hashable, Sendable {
    package var exchange: ExchangeName
    package var routingKey: String
    package var messageID: String
    /// The AMQP `type` property.
    package var type: String
    package var correlationID: String
    /// W3C Trace Context, text form.
    package var traceparent: String?
    package var body: [UInt8]

    package init(
        exchange: ExchangeName, routingKey: String, messageID: String, type: String, correlationID: String,
        traceparent: String? = nil, body: [UInt8]
    ) {
        self.exchange = exchange
        self.routingKey = routingKey
        self.messageID = messageID
        self.type = type
        self.correlationID = correlationID
        self.traceparent = traceparent
        self.body = body
    }

    /// A message of ours, encoded, with its ids taken from its trace.
    ///
    /// - Throws: `WireError.tooLarge` for a body that the next stage would refuse.
    package init<Message: WireMessage>(
        _ message: Message, to exchange: ExchangeName, routingKey: String
    ) throws(WireError) {
        let body = try message.wireBody()
        guard body.count <= WireCoding.maximumBodySize else {
            throw .tooLarge(bytes: body.count, limit: WireCoding.maximumBodySize)
        }
        self.init(
            exchange: exchange, routingKey: routingKey, messageID: Hexadecimal.text(of: message.trace.id),
            type: Message.messageType, correlationID: message.trace.correlation,
            traceparent: message.trace.traceparent, body: body)
    }
}

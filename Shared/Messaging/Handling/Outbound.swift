package import PushProtocol
internal import FoundationEssentials

/// A message to publish. A class, so that several verdicts of a batch can share one: it is published once, and all
/// these messages are settled after its confirm.
package final class Outbound: Sendable {
    package let exchange: ExchangeName
    package let routingKey: String
    package let messageID: String
    /// The AMQP `type` property.
    package let type: String
    package let correlationID: String
    /// W3C Trace Context `traceparent`.
    package let traceparent: String?
    package let body: [UInt8]

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

    /// Encodes a message, with ids from its trace.
    ///
    /// - Throws: `WireError.tooLarge` or `.tooDeep` for a body that the next stage would refuse.
    package convenience init<Message: WireMessage>(
        _ message: Message, to exchange: ExchangeName, routingKey: String
    ) throws(WireError) {
        if let content = message.nestedContent, content.depth >= WireCoding.maximumDepth {
            throw .tooDeep(limit: WireCoding.maximumDepth)
        }
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

extension Outbound: Equatable {
    package static func == (a: Outbound, b: Outbound) -> Bool {
        a === b
            || (a.exchange, a.routingKey, a.messageID, a.type, a.correlationID) == (
                b.exchange, b.routingKey, b.messageID, b.type, b.correlationID
            ) && a.traceparent == b.traceparent && a.body == b.body
    }
}

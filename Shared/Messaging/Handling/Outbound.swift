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
    /// When the causing event arrived, or when a waiting notification was due (``HeaderName/arrived``).
    package let arrivedAt: Timestamp?
    package let body: [UInt8]

    package init(
        exchange: ExchangeName, routingKey: String, messageID: String, type: String, correlationID: String,
        traceparent: String? = nil, arrivedAt: Timestamp? = nil, body: [UInt8]
    ) {
        self.exchange = exchange
        self.routingKey = routingKey
        self.messageID = messageID
        self.type = type
        self.correlationID = correlationID
        self.traceparent = traceparent
        self.arrivedAt = arrivedAt
        self.body = body
    }

    /// Encodes a message, with ids from its trace.
    ///
    /// - Parameter arrivedAt: when the causing event arrived, for metrics.
    /// - Throws: `WireError.tooLarge` or `.tooDeep` for a body that the next stage would refuse.
    package convenience init<Message: WireMessage>(
        _ message: Message, to exchange: ExchangeName, routingKey: String, arrivedAt: Timestamp? = nil
    ) throws(WireError) {
        self.init(
            exchange: exchange, routingKey: routingKey, messageID: Hexadecimal.text(of: message.trace.id),
            type: Message.messageType, correlationID: message.trace.correlation,
            traceparent: message.trace.traceparent, arrivedAt: arrivedAt, body: try message.boundedWireBody())
    }
}

extension Outbound: Equatable {
    /// Ignores ``arrivedAt``, which only metrics use.
    package static func == (a: Outbound, b: Outbound) -> Bool {
        a === b
            || (a.exchange, a.routingKey, a.messageID, a.type, a.correlationID) == (
                b.exchange, b.routingKey, b.messageID, b.type, b.correlationID
            ) && a.traceparent == b.traceparent && a.body == b.body
    }
}

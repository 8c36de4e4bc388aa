internal import AMQP
package import PushProtocol

/// One message as it arrived, before it is decoded. A class, for the same reason as ``Delivery``.
package final class Inbound: Sendable {
    package let queue: WorkQueue
    /// The exchange and routing key it was first published with, also when it came back from a retry.
    package let exchange: String
    package let routingKey: String
    package let contentType: String?
    package let messageID: String?
    package let type: String?
    package let body: [UInt8]
    /// How often this message was tried, this time included: from 1.
    package let attempt: Int
    /// The broker delivered it before, to someone who did not settle it.
    package let redelivered: Bool
    /// When a stage on this queue first saw it.
    package let firstSeen: Timestamp
    private let properties: [String: AMQPValue]

    /// The AMQP headers whose values are text.
    package var headers: [String: String] { properties.compactMapValues(\.text) }

    package convenience init(
        queue: WorkQueue, exchange: String, routingKey: String, contentType: String? = nil, messageID: String? = nil,
        type: String? = nil, headers: [String: String] = [:], body: [UInt8], attempt: Int = 1,
        redelivered: Bool = false, firstSeen: Timestamp = .now
    ) {
        self.init(
            queue: queue, exchange: exchange, routingKey: routingKey, contentType: contentType, messageID: messageID,
            type: type, properties: headers.mapValues(AMQPValue.text), body: body, attempt: attempt,
            redelivered: redelivered, firstSeen: firstSeen)
    }

    init(
        queue: WorkQueue, exchange: String, routingKey: String, contentType: String?, messageID: String?, type: String?,
        properties: [String: AMQPValue], body: [UInt8], attempt: Int, redelivered: Bool, firstSeen: Timestamp
    ) {
        self.queue = queue
        self.exchange = exchange
        self.routingKey = routingKey
        self.contentType = contentType
        self.messageID = messageID
        self.type = type
        self.properties = properties
        self.body = body
        self.attempt = attempt
        self.redelivered = redelivered
        self.firstSeen = firstSeen
    }
}

/// One decoded message, with what it arrived as. A class, since it is handed from one to the next, and messages have
/// dozens of parts to count the references of.
package final class Delivery<Message: Sendable>: Sendable {
    package let inbound: Inbound
    package let message: Message

    package init(inbound: Inbound, message: Message) {
        self.inbound = inbound
        self.message = message
    }
}

package import PushProtocol

/// One message as it arrived, before it is decoded.
package struct Inbound: Hashable, Sendable {
    package var queue: WorkQueue
    /// The exchange and routing key it was first published with, also when it came back from a retry.
    package var exchange: String
    package var routingKey: String
    package var contentType: String?
    package var messageID: String?
    package var type: String?
    /// The AMQP headers whose values are text.
    package var headers: [String: String]
    package var body: [UInt8]
    /// How often this message was tried, this time included: from 1.
    package var attempt: Int
    /// The broker delivered it before, to someone who did not settle it.
    package var redelivered: Bool
    /// When a stage on this queue first saw it.
    package var firstSeen: Timestamp

    package init(
        queue: WorkQueue, exchange: String, routingKey: String, contentType: String? = nil, messageID: String? = nil,
        type: String? = nil, headers: [String: String] = [:], body: [UInt8], attempt: Int = 1,
        redelivered: Bool = false, firstSeen: Timestamp = .now
    ) {
        self.queue = queue
        self.exchange = exchange
        self.routingKey = routingKey
        self.contentType = contentType
        self.messageID = messageID
        self.type = type
        self.headers = headers
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

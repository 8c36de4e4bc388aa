internal import AMQP
package import PushProtocol

/// One message as it arrived, before it is decoded.
package struct Inbound: Sendable {
    package let queue: WorkQueue
    let delivery: AMQPDelivery
    /// How often this message was tried, this time included: from 1.
    package let attempt: Int
    /// When a stage on this queue first saw it.
    package let firstSeen: Timestamp
    private let origin: Origin?

    /// Where a message was first published that came back from a retry.
    final class Origin: Sendable {
        let exchange: String
        let routingKey: String

        init(exchange: String, routingKey: String) {
            self.exchange = exchange
            self.routingKey = routingKey
        }
    }

    init(_ delivery: AMQPDelivery, queue: WorkQueue, origin: Origin? = nil, attempt: Int, firstSeen: Timestamp) {
        self.queue = queue
        self.delivery = delivery
        self.origin = origin
        self.attempt = attempt
        self.firstSeen = firstSeen
    }

    /// One that no broker delivered.
    package init(
        queue: WorkQueue, exchange: String, routingKey: String, contentType: String? = nil, messageID: String? = nil,
        type: String? = nil, timestamp: Int64? = nil, headers: [String: String] = [:], body: [UInt8],
        attempt: Int = 1, redelivered: Bool = false, firstSeen: Timestamp = .now
    ) {
        self.init(
            AMQPDelivery(
                queue: queue.name, tag: AMQPDeliveryTag(generation: 0, value: 0), redelivered: redelivered,
                exchange: exchange, routingKey: routingKey,
                properties: AMQPProperties(
                    contentType: contentType, messageID: messageID, type: type, timestamp: timestamp,
                    headers: headers.mapValues(AMQPValue.text)), body: body),
            queue: queue, attempt: attempt, firstSeen: firstSeen)
    }

    /// The exchange and routing key it was first published with, also when it came back from a retry.
    package var exchange: String { origin?.exchange ?? delivery.exchange }
    package var routingKey: String { origin?.routingKey ?? delivery.routingKey }
    package var contentType: String? { delivery.properties.contentType }
    package var messageID: String? { delivery.properties.messageID }
    package var type: String? { delivery.properties.type }
    package var body: [UInt8] { delivery.body }
    /// When its publisher made it, in whole seconds; where it does not say, when a stage on this queue first saw it. The
    /// copies that retries and replays make keep it.
    package var publishedAt: Timestamp {
        delivery.properties.timestamp.map { Timestamp(milliseconds: 0) + .seconds($0) } ?? firstSeen
    }
    /// The broker delivered it before, to someone who did not settle it.
    package var redelivered: Bool { delivery.redelivered || delivery.wasRedeliveredBefore }
    /// The AMQP headers whose values are text.
    package var headers: [String: String] { delivery.properties.headers.compactMapValues(\.text) }
}

/// One decoded message, with what it arrived as. A class, since both are handed from one to the next, and have dozens of
/// parts to count the references of.
package final class Delivery<Message: Sendable>: Sendable {
    package let inbound: Inbound
    package let message: Message

    package init(inbound: Inbound, message: Message) {
        self.inbound = inbound
        self.message = message
    }
}

package import PushProtocol
internal import AMQP

/// A received message before decoding.
package struct Inbound: Sendable {
    package let queue: WorkQueue
    let delivery: AMQPDelivery
    /// The attempt number, from 1.
    package let attempt: Int
    /// When a stage first received it from this queue.
    package let firstSeen: Timestamp
    private let origin: Origin?

    /// The original exchange and routing key of a message that returned from a retry.
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

    /// An inbound message without a broker, for tests and tools.
    package init(
        queue: WorkQueue, exchange: String, routingKey: String, contentType: String? = nil, messageID: String? = nil,
        type: String? = nil, timestamp: Int64? = nil, headers: [String: String] = [:], body: [UInt8],
        attempt: Int = 1, redelivered: Bool = false, firstSeen: Timestamp = .now, arrivedAt: Timestamp? = nil
    ) {
        var values = headers.mapValues(AMQPValue.text)
        values[HeaderName.arrived] = arrivedAt.map { .int($0.milliseconds) }
        self.init(
            AMQPDelivery(
                queue: queue.name, tag: AMQPDeliveryTag(generation: 0, value: 0), redelivered: redelivered,
                exchange: exchange, routingKey: routingKey,
                properties: AMQPProperties(
                    contentType: contentType, messageID: messageID, type: type, timestamp: timestamp,
                    headers: values), body: body),
            queue: queue, attempt: attempt, firstSeen: firstSeen)
    }

    /// The exchange of the original publish, also after a retry.
    package var exchange: String { origin?.exchange ?? delivery.exchange }
    package var routingKey: String { origin?.routingKey ?? delivery.routingKey }
    package var contentType: String? { delivery.properties.contentType }
    package var messageID: String? { delivery.properties.messageID }
    package var body: [UInt8] { delivery.body }
    /// The publisher's timestamp, in whole seconds; ``firstSeen`` without one. Retries and replays keep it.
    package var publishedAt: Timestamp {
        delivery.properties.timestamp.map { Timestamp(milliseconds: 0) + .seconds($0) } ?? firstSeen
    }
    /// When the causing event arrived, or when a waiting notification was due. For metrics only: an upstream can set
    /// any value.
    package var arrivedAt: Timestamp? {
        delivery.properties.headers[HeaderName.arrived]?.int.map(Timestamp.init(milliseconds:))
    }
    /// When this event arrived: the time in its header, or its publisher's timestamp, or ``firstSeen`` if that is
    /// earlier. A timestamp has whole seconds, so the last millisecond of its second counts: no delay is overstated.
    package var eventArrival: Timestamp {
        let stamp = arrivedAt ?? delivery.properties.timestamp.map { Timestamp(milliseconds: 999) + .seconds($0) }
        return stamp.map { min($0, firstSeen) } ?? firstSeen
    }
    /// Whether the broker delivered it before without a settlement.
    package var redelivered: Bool { delivery.redelivered || delivery.wasRedeliveredBefore }
    /// The header `traceparent`, valid or not.
    package var traceparent: String? { delivery.properties.headers[HeaderName.traceparent]?.text }
    /// The AMQP headers with text values.
    package var headers: [String: String] { delivery.properties.headers.compactMapValues(\.text) }
}

/// A decoded message with its inbound message. A class, because it is passed on often and copying its fields costs
/// reference counts.
package final class Delivery<Message: Sendable>: Sendable {
    package let inbound: Inbound
    package let message: Message
    /// `nil` without tracing, and for a message without a trace.
    package let span: MessageSpan?

    package init(inbound: Inbound, message: Message, span: MessageSpan? = nil) {
        self.inbound = inbound
        self.message = message
        self.span = span
    }

    /// The `traceparent` for later messages that this one causes: of its span, or without tracing the received one.
    package var traceparent: String? { span?.traceparent ?? inbound.traceparent }
}

import AMQP
import PushProtocol
import Testing

@testable import Messaging

/// A replay keeps the age of its message. Senders refuse a push that is older than the known revocations.
@Suite struct DeadLetterAgeTests {
    private let died = Timestamp(milliseconds: 1_767_225_600_000)

    /// The replay copy of a message that a stage dead-lettered at ``died``.
    private func replay(_ properties: AMQPProperties) -> AMQPDelivery {
        let first = delivery(1, properties: properties)
        let dead = RepublishRouting(service: "rules").deadLetterCopy(
            first, as: Inbound(first, queue: queue, now: died), because: Reason(code: "x", detail: "y"), at: died)
        let letter = DeadLetter(
            delivery(2, exchange: "dead", routingKey: dead.routingKey, properties: dead.properties), of: queue)
        let again = letter.replayCopy
        return delivery(3, exchange: "return", routingKey: again.routingKey, properties: again.properties)
    }

    private func publishedAt(_ delivery: AMQPDelivery) -> Timestamp {
        Inbound(delivery, queue: queue, now: died + .seconds(1_000_000)).publishedAt
    }

    @Test func `given a message with a timestamp, then its replay has that timestamp`() {
        let published = died - .seconds(5000)
        #expect(publishedAt(replay(AMQPProperties(timestamp: published.seconds))) == published)
    }

    @Test func `given a message without a timestamp, then its replay has the time of its dead-lettering`() {
        #expect(publishedAt(replay(AMQPProperties())) == died)
    }

    @Test func `given a message dead-lettered by the broker, then its replay has the time in x-death`() {
        let death: AMQPValue = .table([
            "queue": .text(queue.name), "exchange": .text("events"), "routing-keys": .array([.text("demo.x")]),
            "time": .timestamp(died.seconds),
        ])
        let letter = DeadLetter(
            delivery(
                1, exchange: "dead", routingKey: queue.name,
                properties: AMQPProperties(headers: ["x-death": .array([death])])), of: queue)
        #expect(letter.replayCopy.properties.timestamp == died.seconds)
    }

    @Test func `an outbound message has the current timestamp`() {
        let outbound = Outbound(
            exchange: .outcomes, routingKey: "k", messageID: "m", type: "t", correlationID: "c", body: [])
        let before = Timestamp.now.seconds
        let timestamp = outbound.message(from: "rules").properties.timestamp ?? 0
        #expect((before...Timestamp.now.seconds).contains(timestamp))
    }
}

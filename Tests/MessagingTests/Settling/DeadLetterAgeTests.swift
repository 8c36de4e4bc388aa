import AMQP
import PushProtocol
import Testing

@testable import Messaging

/// A replay must not look younger than its message. Senders refuse a push that is older than the known revocations.
@Suite struct DeadLetterAgeTests {
    private let died = Timestamp(milliseconds: 1_767_225_600_000)

    /// The copy that a replay of `properties` makes, after a stage gave up at ``died``.
    private func replay(_ properties: AMQPProperties) -> AMQPDelivery {
        let first = delivery(1, properties: properties)
        let dead = Redirection(service: "rules").deadLetter(
            first, as: Inbound(first, queue: queue, now: died), because: Reason(code: "x", detail: "y"), at: died)
        let letter = DeadLetter(
            delivery(2, exchange: "dead", routingKey: dead.routingKey, properties: dead.properties), of: queue)
        let again = letter.again
        return delivery(3, exchange: "return", routingKey: again.routingKey, properties: again.properties)
    }

    private func publishedAt(_ delivery: AMQPDelivery) -> Timestamp {
        Inbound(delivery, queue: queue, now: died + .seconds(1_000_000)).publishedAt
    }

    @Test func `given a message with a time, then its replay has that time`() {
        let published = died - .seconds(5000)
        #expect(publishedAt(replay(AMQPProperties(timestamp: published.seconds))) == published)
    }

    @Test func `given a message without a time, then its replay is as old as its death`() {
        #expect(publishedAt(replay(AMQPProperties())) == died)
    }

    @Test func `given a message that the broker gave up, then its replay is as old as the broker says`() {
        let death: AMQPValue = .table([
            "queue": .text(queue.name), "exchange": .text("events"), "routing-keys": .array([.text("demo.x")]),
            "time": .timestamp(died.seconds),
        ])
        let letter = DeadLetter(
            delivery(
                1, exchange: "dead", routingKey: queue.name,
                properties: AMQPProperties(headers: ["x-death": .array([death])])), of: queue)
        #expect(letter.again.properties.timestamp == died.seconds)
    }

    @Test func `a stage says when it publishes`() {
        let outbound = Outbound(
            exchange: .outcomes, routingKey: "k", messageID: "m", type: "t", correlationID: "c", body: [])
        let before = Timestamp.now.seconds
        let timestamp = outbound.message(from: "rules").properties.timestamp ?? 0
        #expect((before...Timestamp.now.seconds).contains(timestamp))
    }
}

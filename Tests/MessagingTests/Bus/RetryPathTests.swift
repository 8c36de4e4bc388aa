import AMQP
import Messaging
import PushProtocol
import TestSupport
import Testing

/// The way back from a retry, on the real broker: another stage cannot use it.
@Suite(.enabled(if: TestBroker.isAvailable, "needs a broker"), .timeLimit(.minutes(2))) struct RetryPathTests {
    /// RabbitMQ before version 4 does not check the keys in `CC`, and keeps them from a retry level to `return`.
    @Test func `a message in another stage's retry, with this queue in its CC header, is dead-lettered unread`()
        async throws
    {
        try await BusKind.rabbitMQ.with { bus in
            let forged = AMQPMessage(
                exchange: "retry.5s", routingKey: "feedback.outcomes",
                properties: AMQPProperties(
                    messageID: "forged",
                    headers: [
                        "CC": .array([.text(queue.name)]), HeaderName.exchange: "events",
                        HeaderName.routingKey: "bank.happened",
                    ]), body: Array("forged".utf8))
            let own = AMQPMessage(
                exchange: "retry.5s", routingKey: queue.name,
                properties: AMQPProperties(headers: [
                    HeaderName.exchange: "events", HeaderName.routingKey: "demo.happened", HeaderName.attempt: 2,
                ]), body: Array("own".utf8))
            #expect(try await bus.publish([forged, own]) == [.confirmed, .confirmed])
            let handler = ScriptedHandler()
            try await withStage(bus, handler) { _ in
                try await eventually("the own retry and a dead letter") {
                    guard handler.handled.count == 1 else { return false }
                    return try await bus.ready(in: queue.deadName) == 1
                }
            }
            #expect(handler.handled.map(\.message) == ["own"])
            #expect(handler.handled.map(\.inbound.routingKey) == ["demo.happened"])
            let letter = try #require(try await bus.take(from: queue.deadName))
            #expect(letter.text == "forged")
            #expect(letter.properties.headers[HeaderName.reason]?.text == "wrong-routing-key")
            // A replay of it would not be another app's event either.
            #expect(letter.properties.headers[HeaderName.routingKey]?.text == "feedback.outcomes")
        }
    }
}

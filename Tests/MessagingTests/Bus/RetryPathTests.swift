import AMQP
import Messaging
import PushProtocol
import Testing
import TestSupport

/// Another stage cannot use a queue's return path, on the real broker.
@Suite(.enabled(if: TestBroker.isAvailable, "needs a broker"), .timeLimit(.minutes(2))) struct RetryPathTests {
    /// RabbitMQ before version 4 does not check the keys in `CC`, and keeps them from a retry level to `return`
    /// (Shared/Messaging/BrokerFacts.md §1.11).
    @Test func `a message routed here by a CC header through another stage's retry is dead-lettered`()
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
            // A replay would not become another app's event either.
            #expect(letter.properties.headers[HeaderName.routingKey]?.text == "feedback.outcomes")
        }
    }
}

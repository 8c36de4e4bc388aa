import AMQP
import PushProtocol
import Testing
import TestSupport

@testable import Messaging

/// Messages above the limits of the broker or of a stage.
@Suite(.enabled(if: TestBroker.isAvailable, "needs a broker"), .timeLimit(.minutes(2)))
struct RefusalTests {
    private static func dead(_ bus: any BusUnderTest) async throws -> AMQPMessage {
        try await eventuallySome("the dead letter", within: .seconds(30)) { try await bus.take(from: queue.deadName) }
    }

    @Test func `an outbound above the broker's size limit dead-letters its input only`()
        async throws
    {
        try await BusKind.rabbitMQ.with { bus in
            let handler = ScriptedHandler(each: { delivery in
                let size = delivery.message == "big" ? 3_000_000 : 10
                return .done([
                    Outbound(
                        exchange: .notifications, routingKey: "interactive.demo", messageID: "m-\(delivery.message)",
                        type: "test", correlationID: "c", body: [UInt8](repeating: 0x20, count: size))
                ])
            })
            try await withStage(bus, handler) { _ in
                _ = try await bus.publish((1...20).map { .event($0 == 7 ? "big" : "\($0)") })
                let dead = try await Self.dead(bus)
                #expect(dead.properties.headers[HeaderName.reason]?.text == "outbound-refused")
                #expect(dead.properties.headers[HeaderName.detail]?.text?.contains("max size") == true)
                let next = WorkQueue.registryNotifications(.interactive).name
                try await eventually(within: .seconds(30)) { try await bus.ready(in: next) >= 19 }
            }
            #expect(handler.handled.count { $0.message == "big" } == 1)
            #expect(try await bus.ready(in: queue.deadName) == 0)
            #expect(try await bus.ready(in: queue.name) == 0)
        }
    }

    @Test func `a message with a body above the limit is dead-lettered without its body`() async throws {
        try await BusKind.rabbitMQ.with { bus in
            let handler = ScriptedHandler()
            try await withStage(bus, handler) { _ in
                var long = AMQPMessage.event("")
                long.body = [UInt8](repeating: 0x61, count: 1_000_000)
                long.properties.messageID = "long"
                _ = try await bus.publish([long, .event("short")])
                let dead = try await Self.dead(bus)
                #expect(dead.body.isEmpty)
                #expect(dead.properties.messageID == "long")
                #expect(dead.properties.headers[HeaderName.reason]?.text == "too-large")
                #expect(dead.properties.headers[HeaderName.detail]?.text?.contains("1000000") == true)
                try await eventually { handler.handled.map(\.message) == ["short"] }
            }
        }
    }

    @Test func `an undecodable message with oversized headers is dead-lettered without them`()
        async throws
    {
        try await BusKind.rabbitMQ.with { bus in
            let handler = ScriptedHandler()
            try await withStage(bus, handler) { _ in
                var poison = AMQPMessage.event("poison")
                poison.properties.headers["theirs"] = .text(String(repeating: "x", count: 120 * 1024 - 30))
                #expect(try await bus.publish([poison]) == [.confirmed])
                let dead = try await Self.dead(bus)
                #expect(dead.properties.headers["theirs"] == nil)
                #expect(dead.properties.headers[HeaderName.reason]?.text == "not-json")
                #expect(dead.body == Array("poison".utf8))
                try await eventually { try await bus.ready(in: queue.name) == 0 }
            }
        }
    }
}

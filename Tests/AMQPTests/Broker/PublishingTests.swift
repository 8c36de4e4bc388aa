import Foundation
import Testing
import TestSupport

@testable import AMQP

@Suite(.enabled(if: TestBroker.isAvailable, "needs a broker"), .timeLimit(.minutes(2)))
struct PublishingTests {
    @Test func `a published message keeps all properties and is confirmed`() async throws {
        // A quorum queue would add a header.
        try await RealBroker.withQueue([:]) { queue in
            let message = AMQPMessage(
                exchange: "", routingKey: queue,
                properties: AMQPProperties(
                    contentType: "application/json", contentEncoding: "utf-8", messageID: "id", correlationID: "cor",
                    type: "type", appID: "app", expiration: "600000", userID: nil, persistent: true,
                    timestamp: 1_700_000_000,
                    headers: [
                        "void": .void, "bool": true, "int": -5, "double": .double(0.5), "text": "ü",
                        "bytes": .bytes([0, 255]), "time": .timestamp(7), "array": .array([1, "two"]),
                        "table": .table(["deep": .table(["er": 1])]),
                    ]), body: Array("{}".utf8))
            try await RealBroker.withPublisher { publisher in
                let answer = try await publisher.publish([message])
                #expect(answer == [.confirmed])
            }
            let found = try await RealBroker.drain(queue)
            #expect(found.map(\.properties) == [message.properties])
            #expect(found.map(\.body) == [message.body])
            #expect(found.map(\.routingKey) == [queue])
        }
    }

    @Test func `thousands of messages keep their order`() async throws {
        try await RealBroker.withQueue { queue in
            let messages = (0..<3000).map { AMQPMessage.to(queue, "\($0)") }
            try await RealBroker.withPublisher { publisher in
                let confirmations = try await publisher.publish(messages)
                #expect(confirmations == Array(repeating: .confirmed, count: 3000))
            }
            #expect(try await RealBroker.drain(queue).map(\.text) == (0..<3000).map(String.init))
        }
    }

    /// 131 064 bytes fill exactly one body frame. librabbitmq 0.11 then leaves `MSG_MORE` set
    /// (Shared/Messaging/BrokerFacts.md §2.8).
    @Test(arguments: [0, 1, 131_063, 131_064, 131_065, 262_128, 1_000_000])
    func `bodies of any size are published`(size: Int) async throws {
        try await RealBroker.withQueue { queue in
            let body = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31) }
            try await RealBroker.withPublisher { publisher in
                let message = AMQPMessage(exchange: "", routingKey: queue, body: body)
                let answer = try await publisher.publish([message, message])
                #expect(answer == [.confirmed, .confirmed])
            }
            #expect(try await RealBroker.drain(queue).map(\.body) == [body, body])
        }
    }

    @Test func `only unroutable messages are returned`() async throws {
        try await RealBroker.withQueue { queue in
            try await RealBroker.withPublisher { publisher in
                var messages = (0..<100).map { AMQPMessage.to(queue, "\($0)") }
                messages[10].routingKey = "nowhere"
                messages[20].routingKey = "nowhere"
                messages[20].properties.messageID = nil
                messages[30].properties.messageID = messages[29].properties.messageID
                messages[30].routingKey = "nowhere"
                let confirmations = try await publisher.publish(messages)
                for (index, confirmation) in confirmations.enumerated() {
                    let isLost = [10, 20, 30].contains(index)
                    #expect(confirmation == (isLost ? .returned(code: 312, text: "NO_ROUTE") : .confirmed))
                }
            }
        }
    }

    @Test func `only messages to the missing exchange are returned`() async throws {
        try await RealBroker.withQueue { queue in
            try await RealBroker.withPublisher { publisher in
                var messages = (0..<50).map { AMQPMessage.to(queue, "\($0)") }
                let gone = RealBroker.name("gone")
                for index in [7, 8, 40] { messages[index].exchange = gone }
                let confirmations = try await publisher.publish(messages)
                for (index, confirmation) in confirmations.enumerated() {
                    guard [7, 8, 40].contains(index) else {
                        #expect(confirmation == .confirmed)
                        continue
                    }
                    guard case .returned(code: 404, let text) = confirmation else {
                        Issue.record("\(confirmation)")
                        continue
                    }
                    #expect(text.contains(gone))
                }
                // After the exchange exists, messages are published.
                try await RealBroker.administer { administrator in
                    try await administrator.declareExchange(name: gone, kind: "topic")
                    try await administrator.bind(queue: queue, exchange: gone, routingKey: "#")
                }
                try await eventually { try await publisher.publish([messages[7]]) == [.confirmed] }
                try await RealBroker.administer { try await $0.deleteExchange(gone) }
            }
            let texts = Set(try await RealBroker.drain(queue).map(\.text))
            #expect(texts == Set((0..<50).map(String.init)).subtracting(["8", "40"]))
        }
    }

    @Test func `only messages with invalid properties are returned`() async throws {
        try await RealBroker.withQueue { queue in
            try await RealBroker.withPublisher { publisher in
                var messages = (0..<20).map { AMQPMessage.to(queue, "\($0)") }
                messages[5].properties.expiration = "soon"
                messages[6].properties.userID = "somebody-else"
                messages[9].routingKey = String(repeating: "k", count: 256)
                let confirmations = try await publisher.publish(messages)
                for (index, confirmation) in confirmations.enumerated() {
                    switch (index, confirmation) {
                    case (5, .returned(code: 406, _)), (6, .returned(code: 406, _)), (9, .returned(code: 502, _)):
                        continue
                    default: #expect(confirmation == .confirmed)
                    }
                }
            }
        }
    }

    @Test func `a full queue with reject-publish causes a nack`() async throws {
        let arguments: [String: AMQPValue] = ["x-max-length": 2, "x-overflow": "reject-publish"]
        try await RealBroker.withQueue(arguments) { queue in
            try await RealBroker.withPublisher(window: .init(messages: 1, bytes: 1000)) { publisher in
                let confirmations = try await publisher.publish((0..<20).map { .to(queue, "\($0)") })
                #expect(confirmations.first == .confirmed)
                #expect(confirmations.last == .nacked)
            }
        }
    }

    @Test func `concurrent callers get their own answers`() async throws {
        try await RealBroker.withQueue { queue in
            try await RealBroker.withPublisher { publisher in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for caller in 0..<50 {
                        group.addTask {
                            let isLost = caller % 3 == 0
                            let target = isLost ? "nowhere" : queue
                            let answers = try await publisher.publish((0..<20).map { .to(target, "\(caller).\($0)") })
                            let expected: AMQPConfirmation =
                                isLost ? .returned(code: 312, text: "NO_ROUTE") : .confirmed
                            #expect(answers == Array(repeating: expected, count: 20))
                        }
                    }
                    try await group.waitForAll()
                }
            }
        }
    }

    @Test func `a cancelled caller stops waiting`() async throws {
        let unreachable = try AMQPConfiguration(url: "amqp://u:p@127.0.0.1:1", connectionName: "test")
        try await RealBroker.withPublisher(unreachable) { publisher in
            let call = Task { try await publisher.publish([.to("queue", "1")]) }
            call.cancel()
            await #expect { try await call.value } throws: { ($0 as? AMQPError)?.code == .cancelled }
        }
    }

    @Test func `publishing after the end throws closed`() async throws {
        let publisher = AMQPPublisher(configuration: try RealBroker.configuration(), logger: RealBroker.logger)
        let running = Task { try await publisher.run() }
        try await eventually { publisher.state == .connected }
        running.cancel()
        try await running.value
        #expect(publisher.state == .closed)
        await #expect { try await publisher.publish([.to("q", "1")]) } throws: { ($0 as? AMQPError)?.code == .closed }
        await #expect { try await publisher.run() } throws: { ($0 as? AMQPError)?.code == .closed }
    }
}

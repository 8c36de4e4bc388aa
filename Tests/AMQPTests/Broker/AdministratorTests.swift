import Glibc
import Testing
import TestSupport

@testable import AMQP

@Suite(.enabled(if: TestBroker.isAvailable, "needs a broker"), .timeLimit(.minutes(2)))
struct AdministratorTests {
    @Test func `topology is declared, queried, used and deleted`() async throws {
        let (exchange, queue) = (RealBroker.name("exchange"), RealBroker.name("queue"))
        try await RealBroker.administer { administrator in
            #expect(try await administrator.exchangeExists(exchange) == false)
            #expect(try await administrator.queueStatus(queue) == nil)
            try await administrator.declareExchange(name: exchange, kind: "topic")
            try await administrator.declareExchange(name: exchange, kind: "topic")
            try await administrator.declareQueue(name: queue, arguments: ["x-queue-type": "quorum"])
            try await administrator.bind(queue: queue, exchange: exchange, routingKey: "a.#")
            #expect(try await administrator.exchangeExists(exchange))
            #expect(try await administrator.get(queue) == nil)

            let message = AMQPMessage(exchange: exchange, routingKey: "a.b", body: Array("hello".utf8))
            #expect(try await administrator.publish(message) == .confirmed)
            #expect(try await administrator.queueStatus(queue)?.messages == 1)
            #expect(try await administrator.get(queue)?.text == "hello")

            try await administrator.unbind(queue: queue, exchange: exchange, routingKey: "a.#")
            #expect(try await administrator.publish(message) == .returned(code: 312, text: "NO_ROUTE"))
            #expect(try await administrator.publish(.to(queue, "again")) == .confirmed)
            #expect(try await administrator.queueStatus(queue)?.messages == 1)
            try await administrator.deleteQueue(queue)
            try await administrator.deleteExchange(exchange)
            try await administrator.deleteQueue(queue)
        }
    }

    @Test func `after a refusal the next call works`() async throws {
        let queue = RealBroker.name("queue")
        try await RealBroker.administer { administrator in
            try await administrator.declareQueue(name: queue)
            await #expect {
                try await administrator.declareQueue(name: queue, arguments: ["x-max-length": 1])
            } throws: {
                ($0 as? AMQPError)?.code == .channelClosed(replyCode: 406)
            }
            await #expect { try await administrator.get("\(queue).missing") } throws: {
                ($0 as? AMQPError)?.code == .channelClosed(replyCode: 404)
            }
            guard
                case .returned(code: 404, _) = try await administrator.publish(
                    AMQPMessage(exchange: "\(queue).missing", routingKey: "k", body: []))
            else {
                Issue.record("a missing exchange took a message")
                return
            }
            #expect(try await administrator.publish(.to(queue, "1")) == .confirmed)
            try await administrator.deleteQueue(queue)
        }
    }

    @Test func `an unreachable broker is an error with its address`() async throws {
        let configuration = try AMQPConfiguration(url: "amqp://u:hidden@127.0.0.1:1/v", connectionName: "test")
        await #expect {
            try await AMQPAdministrator.with(configuration, logger: RealBroker.logger) { _ in }
        } throws: { error in
            let text = "\(error)"
            return (error as? AMQPError)?.code == .unreachable && text.contains("127.0.0.1:1: Connection refused")
                && !text.contains("hidden")
        }
    }

    @Test func `closed connections leak no descriptors or threads`() async throws {
        try await RealBroker.administer { _ in }
        let before = (Self.count("/proc/self/fd"), Self.count("/proc/self/task"))
        for _ in 0..<100 { try await RealBroker.administer { _ in } }
        // Other tests run in parallel; a leak would be hundreds.
        try await eventually {
            Self.count("/proc/self/fd") < before.0 + 90 && Self.count("/proc/self/task") < before.1 + 90
        }
    }

    private static func count(_ folder: String) -> Int {
        guard let directory = opendir(folder) else { return 0 }
        defer { closedir(directory) }
        var count = 0
        while readdir(directory) != nil { count += 1 }
        return count
    }
}

import Logging
import ServiceLifecycle
import Testing
import TestSupport

@testable import AMQP

@Suite(.enabled(if: TestBroker.isAvailable, "needs a broker"), .timeLimit(.minutes(2)))
struct ShutdownTests {
    /// Runs `service` until `body` requests its graceful shutdown.
    private static func run(_ service: some Service, _ body: (_ shutDown: () async -> Void) async throws -> Void)
        async throws
    {
        let group = ServiceGroup(services: [service], logger: RealBroker.logger)
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            try await body { await group.triggerGracefulShutdown() }
            try await tasks.waitForAll()
        }
    }

    @Test func `graceful shutdown of a publisher waits for its confirms`() async throws {
        try await RealBroker.withQueue { queue in
            try await RealBroker.withProxy { proxy in
                let publisher = AMQPPublisher(
                    configuration: try RealBroker.configuration(through: proxy), logger: RealBroker.logger)
                try await Self.run(publisher) { shutDown in
                    try await eventually { publisher.state == .connected }
                    proxy.holdResponses()
                    let publishing = Task { try await publisher.publish((0..<1000).map { .to(queue, "\($0)") }) }
                    try await eventually { try await RealBroker.status(queue)?.messages ?? 0 > 0 }
                    await shutDown()
                    proxy.resumeTraffic()
                    #expect(try await publishing.value == Array(repeating: .confirmed, count: 1000))
                }
                #expect(publisher.state == .closed)
            }
        }
    }

    @Test func `a publisher without a broker ends at the drain deadline with an error`() async throws {
        var configuration = try AMQPConfiguration(url: "amqp://u:p@127.0.0.1:1", connectionName: "test")
        configuration.timeouts.drain = .milliseconds(50)
        let publisher = AMQPPublisher(configuration: configuration, logger: RealBroker.logger)
        try await Self.run(publisher) { shutDown in
            let publishing = Task { try await publisher.publish([.to("queue", "1")]) }
            try await eventually {
                guard case .connecting(_, .some) = publisher.state else { return false }
                return true
            }
            await shutDown()
            await #expect { try await publishing.value } throws: { ($0 as? AMQPError)?.code == .closed }
        }
    }

    @Test func `graceful shutdown of a consumer waits for outstanding acknowledgements`() async throws {
        try await RealBroker.withQueue { queue in
            try await RealBroker.withPublisher { publisher in
                _ = try await publisher.publish((0..<10).map { .to(queue, "\($0)") })
            }
            let consumer = AMQPConsumer(configuration: try RealBroker.configuration(), logger: RealBroker.logger)
            try await Self.run(consumer) { shutDown in
                let subscription = consumer.subscribe(queue: queue, prefetch: 4)
                var taken: [AMQPDelivery] = []
                for await burst in subscription.deliveries {
                    taken += burst
                    if taken.count == 4 { break }
                }
                await shutDown()
                try await eventually { subscription.state == .cancelled }
                #expect(consumer.state == .connected)
                consumer.acknowledge(taken.map(\.tag))
            }
            #expect(consumer.state == .closed)
            #expect(try await RealBroker.status(queue)?.messages == 6)
            let late = consumer.subscribe(queue: queue, prefetch: 1)
            for await _ in late.deliveries { Issue.record("a delivery from a consumer that ended") }
        }
    }
}

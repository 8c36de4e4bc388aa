import Foundation
import Primitives
import Synchronization
import Testing
import TestSupport

@testable import AMQP

/// URLs with several hosts.
@Suite(.enabled(if: TestBroker.isAvailable, "needs a broker"), .timeLimit(.minutes(2)))
struct SeveralHostsTests {
    /// A configuration with these ports of this machine, in this order.
    private static func configuration(ports: [Int]) throws -> AMQPConfiguration {
        let hosts = ports.map { "127.0.0.1:\($0)" }.joined(separator: ",")
        let url = try RealBroker.url().replacing(#/@[^/]+/#, with: "@\(hosts)")
        var configuration = try AMQPConfiguration(url: url, connectionName: "amqp-tests")
        configuration.backoff = .init(base: .milliseconds(10), cap: .milliseconds(100))
        configuration.random = { 0.5 }
        return configuration
    }

    @Test func `after the end of a host, publisher and consumer continue on the next one`() async throws {
        try await RealBroker.withQueue { queue in
            let url = try RealBroker.url()
            let port = try #require(URLComponents(string: url)?.port)
            try await RealBroker.withProxy { proxy in
                let configuration = try Self.configuration(ports: [proxy.port, port])
                try await RealBroker.withConsumer(configuration) { consumer in
                    let subscription = consumer.subscribe(queue: queue, prefetch: 10)
                    try await RealBroker.withPublisher(configuration) { publisher in
                        var deliveries = subscription.deliveries.makeAsyncIterator()
                        let before = try await publisher.publish([.to(queue, "before")])
                        #expect(before == [.confirmed])
                        #expect(await deliveries.next()?.first?.text == "before")
                        proxy.stop()
                        let after = try await publisher.publish([.to(queue, "after")])
                        #expect(after == [.confirmed])
                        var texts: Set<String> = []
                        while !texts.contains("after"), let burst = await deliveries.next() {
                            texts.formUnion(burst.map(\.text))
                        }
                        #expect(texts.contains("after"))
                    }
                }
            }
        }
    }

    /// A node without a majority accepts connections, and closes them at the first use of a queue.
    @Test func `hosts that accept connections and soon close them are reconnected to with a pause`() async throws {
        try await RealBroker.withProxy { proxy in
            var configuration = try Self.configuration(ports: [proxy.port, proxy.port, proxy.port])
            let counter = PauseCounter()
            configuration.random = counter.next
            let logs = CapturingLogger()
            let connections = { logs.lines.count { $0.message == "Connected to the broker" } }
            try await RealBroker.withPublisher(configuration, logger: logs.logger) { _ in
                for round in 1...3 {
                    #expect(counter.count == 0)
                    try await eventually { connections() == round }
                    proxy.cut()
                }
                try await eventually("the first pause") { counter.count == 1 }
            }
        }
    }
}

/// Counts the pauses: the backoff takes one random number for each.
private final class PauseCounter: Sendable {
    private let taken = Mutex(0)

    var count: Int { taken.withLock { $0 } }

    func next() -> Double {
        taken.withLock {
            $0 += 1
            return 0.5
        }
    }
}

import AMQP
import Logging
import Messaging
import Primitives
import PushProtocol
import ServiceLifecycle
import Testing
import TestSupport

/// The buses of the conformance suite.
enum BusKind: String, CaseIterable, CustomTestStringConvertible {
    case memory
    case rabbitMQ

    static var available: [BusKind] { TestBroker.isAvailable ? allCases : [.memory] }

    var testDescription: String { rawValue }

    /// Runs `body` with a bus on the topology of the app `demo`, whose shortest retry level waits 50 ms.
    func with(_ body: @Sendable (any BusUnderTest) async throws -> Void) async throws {
        switch self {
        case .memory: try await body(InMemoryBus(topology: .quick))
        case .rabbitMQ:
            try await TestBroker.withVirtualHost { url in
                var configuration = try AMQPConfiguration(url: url, connectionName: "messaging tests")
                // Some tests keep deliveries unsettled, and some break connections.
                configuration.timeouts.drain = .milliseconds(500)
                configuration.backoff.cap = .milliseconds(500)
                let settled = configuration
                try await AMQPAdministrator.with(settled, logger: .quiet) { administrator in
                    try await Topology.quick.apply(using: administrator)
                }
                try await RabbitMQ.with(settled, body)
            }
        }
    }
}

/// A bus with extra operations for tests.
protocol BusUnderTest: MessageBus {
    /// The number of ready messages in `queue`.
    func ready(in queue: String) async throws -> Int
    /// Takes one ready message.
    func take(from queue: String) async throws -> AMQPMessage?
    /// Lets the delay of the shortest retry level pass.
    func passRetryTime() async throws
    /// Closes the connections; they reconnect.
    func breakConnections() async throws
}

extension InMemoryBus: BusUnderTest {
    func ready(in queue: String) -> Int { messages(in: queue).count }
    func take(from queue: String) -> AMQPMessage? { takeFirst(from: queue) }
    func passRetryTime() { expireRetries(.seconds5) }
    func breakConnections() { loseConnection() }
}

/// RabbitMQ on its own virtual host.
struct RabbitMQ: BusUnderTest, ForwardingBus {
    private let configuration: AMQPConfiguration
    let bus: AMQPBus

    static func with(
        _ configuration: AMQPConfiguration, _ body: @Sendable (any BusUnderTest) async throws -> Void
    ) async throws {
        let publisher = AMQPPublisher(configuration: configuration, logger: .quiet)
        let consumer = AMQPConsumer(configuration: configuration, logger: .quiet)
        let group = ServiceGroup(services: [publisher, consumer], logger: .quiet)
        let bus = AMQPBus(publisher: publisher, consumer: consumer)
        async let running: Void = group.run()
        let outcome: Result<Void, any Error>
        do {
            outcome = .success(try await body(RabbitMQ(configuration: configuration, bus: bus)))
        } catch {
            outcome = .failure(error)
        }
        await group.triggerGracefulShutdown()
        try await running
        try outcome.get()
    }

    func ready(in queue: String) async throws -> Int {
        try await administer { try await $0.queueStatus(queue)?.messages ?? 0 }
    }

    func take(from queue: String) async throws -> AMQPMessage? {
        try await administer { administrator in
            guard let found = try await administrator.get(queue) else { return nil }
            return AMQPMessage(
                exchange: found.exchange, routingKey: found.routingKey, properties: found.properties, body: found.body)
        }
    }

    /// The level's 50 ms pass in real time.
    func passRetryTime() {}

    func breakConnections() async throws {
        try await TestBroker.control(
            "close_all_connections", "--vhost", configuration.virtualHost, "a test breaks them")
    }

    private func administer<R: Sendable>(
        _ body: @Sendable (AMQPAdministrator) async throws -> R
    ) async throws -> R {
        try await AMQPAdministrator.with(configuration, logger: .quiet, body)
    }
}

extension Topology {
    /// The topology of the app `demo`, with a short delay in the shortest retry level.
    static var quick: Topology {
        quick(.withoutPerAppQueues(apps: [demo]))
    }

    static func quick(_ topology: Topology) -> Topology {
        var topology = topology
        for index in topology.queues.indices where topology.queues[index].name == RetryLevel.seconds5.queueName {
            topology.queues[index].arguments["x-message-ttl"] = .number(50)
        }
        return topology
    }
}

extension Logger {
    static var quiet: Logger { Logger(label: "test") { _ in SwiftLogNoOpLogHandler() } }
}

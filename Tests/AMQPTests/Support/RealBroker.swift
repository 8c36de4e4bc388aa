import Foundation
import Logging
import Primitives
import TestSupport

@testable import AMQP

/// Objects on the real broker for the duration of one test. Names are unique, because tests run in parallel.
enum RealBroker {
    static func name(_ hint: String) -> String { "amqp-tests.\(hint).\(UUID().uuidString.lowercased())" }

    /// A configuration with a short, fixed backoff.
    static func configuration(
        through proxy: FaultProxy? = nil, name: String = "amqp-tests", heartbeat: Duration = .seconds(20)
    ) throws -> AMQPConfiguration {
        var configuration = try AMQPConfiguration(url: url(through: proxy), connectionName: name, heartbeat: heartbeat)
        configuration.backoff = Backoff(base: .milliseconds(10), cap: .milliseconds(100))
        configuration.random = { 0.5 }
        return configuration
    }

    static func url(through proxy: FaultProxy? = nil) throws -> String {
        guard let url = TestBroker.url, var components = URLComponents(string: url) else {
            throw AMQPError(.configuration, operation: "find the broker", detail: "HELIOGRAPH_TEST_AMQP_URL is not set")
        }
        if let proxy { (components.host, components.port) = ("127.0.0.1", proxy.port) }
        return components.string ?? url
    }

    static func withProxy(_ body: (FaultProxy) async throws -> Void) async throws {
        let port = URLComponents(string: try url())?.port ?? 5672
        let proxy = try FaultProxy(target: port)
        defer { proxy.stop() }
        try await body(proxy)
    }

    static let logger = Logger(label: "amqp-tests") { _ in SwiftLogNoOpLogHandler() }

    @discardableResult
    static func administer<R: Sendable>(
        _ body: @Sendable (AMQPAdministrator) async throws -> R
    ) async throws -> R {
        try await AMQPAdministrator.with(configuration(), logger: logger, body)
    }

    /// Runs `body` with a new queue; a quorum queue unless `arguments` differ.
    static func withQueue(
        _ arguments: [String: AMQPValue] = ["x-queue-type": "quorum"], _ body: (String) async throws -> Void
    ) async throws {
        let queue = name("queue")
        try await administer { try await $0.declareQueue(name: queue, arguments: arguments) }
        let outcome: Result<Void, any Error>
        do { outcome = .success(try await body(queue)) } catch { outcome = .failure(error) }
        try await administer { try await $0.deleteQueue(queue) }
        try outcome.get()
    }

    /// Runs a publisher during `body`.
    static func withPublisher(
        _ configuration: AMQPConfiguration? = nil, window: AMQPPublishWindow = .init(), logger: Logger = logger,
        _ body: (AMQPPublisher) async throws -> Void
    ) async throws {
        let publisher = AMQPPublisher(
            configuration: try configuration ?? Self.configuration(), window: window, logger: logger)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await publisher.run() }
            defer { group.cancelAll() }
            try await body(publisher)
        }
    }

    /// Runs a consumer during `body`.
    static func withConsumer(
        _ configuration: AMQPConfiguration? = nil, logger: Logger = logger,
        _ body: (AMQPConsumer) async throws -> Void
    ) async throws {
        let consumer = AMQPConsumer(configuration: try configuration ?? Self.configuration(), logger: logger)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await consumer.run() }
            defer { group.cancelAll() }
            try await body(consumer)
        }
    }

    /// Takes all ready messages off a queue.
    static func drain(_ queue: String) async throws -> [AMQPDelivery] {
        try await administer { administrator in
            var deliveries: [AMQPDelivery] = []
            while let delivery = try await administrator.get(queue) { deliveries.append(delivery) }
            return deliveries
        }
    }

    static func status(_ queue: String) async throws -> (messages: Int, consumers: Int)? {
        try await administer { try await $0.queueStatus(queue) }
    }

    /// Whether no message is ready. A passive declare does not count unacknowledged messages.
    static func isEmpty(_ queue: String) async throws -> Bool {
        try await status(queue)?.messages == 0
    }
}

extension AMQPMessage {
    /// A message for the default exchange, which routes by queue name.
    static func to(_ queue: String, _ text: String, id: String? = nil) -> AMQPMessage {
        AMQPMessage(
            exchange: "", routingKey: queue, properties: AMQPProperties(messageID: id ?? text), body: Array(text.utf8))
    }
}

extension AMQPDelivery {
    var text: String { String(decoding: body, as: UTF8.self) }
}

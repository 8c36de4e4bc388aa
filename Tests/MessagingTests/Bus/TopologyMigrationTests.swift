import AMQP
import Messaging
import PushProtocol
import Synchronization
import Testing
import TestSupport

/// Applying the topology to a broker with an earlier release's topology.
@Suite(.enabled(if: TestBroker.isAvailable, "needs a broker"), .timeLimit(.minutes(2))) struct TopologyMigrationTests {
    /// Counts the confirmed messages.
    private final class Progress: Sendable {
        private let value = Mutex(0)
        var count: Int { value.withLock { $0 } }
        func advance() { value.withLock { $0 += 1 } }
    }

    /// The topology of earlier releases: fanout retry exchanges and a direct dead-letter exchange.
    private static let former: Topology = {
        var topology = Topology.quick(.withoutPerAppQueues(apps: [demo]))
        for index in topology.exchanges.indices {
            guard let kind = topology.exchanges[index].formerKind else { continue }
            topology.exchanges[index] = .init(name: topology.exchanges[index].name, kind: kind)
        }
        for index in topology.bindings.indices where topology.bindings[index].exchange.hasPrefix("retry.") {
            topology.bindings[index].routingKey = ""
        }
        return topology
    }()

    private static let present = Topology.quick(Topology(apps: [demo]))

    @Test func `changing exchange types under load loses no message`() async throws {
        try await TestBroker.withVirtualHost { url in
            let configuration = try AMQPConfiguration(url: url, connectionName: "migration tests")
            try await AMQPAdministrator.with(configuration, logger: .quiet) { administrator in
                try await Self.former.apply(using: administrator)
                let confirmed = Progress()
                let count = 400
                try await RabbitMQ.with(configuration) { bus in
                    async let publishing: Void = Self.publish(count, on: bus) { confirmed.advance() }
                    try await eventually("publishing has begun") { confirmed.count > 20 }
                    try await Self.present.apply(using: administrator)
                    #expect(confirmed.count < count)
                    try await publishing
                }
                for queue in [queue.name, queue.deadName] {
                    var ids: Set<String> = []
                    try await eventually("every message in \(queue)") {
                        while let delivery = try await administrator.get(queue) {
                            ids.insert(delivery.properties.messageID ?? "")
                        }
                        return ids.count >= count
                    }
                    #expect(ids == Set((0..<count).map(String.init)))
                }
                // The exchanges have the new types: a declaration with the former type is refused.
                for exchange in Self.present.exchanges {
                    guard let former = exchange.formerKind else { continue }
                    let error = await #expect(throws: AMQPError.self) {
                        try await administrator.declareExchange(name: exchange.name, kind: former.rawValue)
                    }
                    #expect(error?.code == .channelClosed(replyCode: 406))
                }
            }
        }
    }

    @Test func `moving events to per-app queues leaves no event without a queue`() async throws {
        try await TestBroker.withVirtualHost { url in
            let configuration = try AMQPConfiguration(url: url, connectionName: "migration tests")
            try await AMQPAdministrator.with(configuration, logger: .quiet) { administrator in
                try await Self.former.apply(using: administrator)
                let count = 2000
                let confirmed = Progress()
                try await RabbitMQ.with(configuration) { bus in
                    async let publishing: Void = Self.publishEvents(count, on: bus) { confirmed.advance() }
                    try await eventually("publishing has begun") { confirmed.count > 20 }
                    try await Self.present.apply(using: administrator)
                    #expect(confirmed.count < count)
                    try await publishing
                    let strange = AMQPMessage(
                        exchange: "events", routingKey: "strange.happened",
                        properties: AMQPProperties(messageID: "strange.happened"), body: [2])
                    #expect(try await bus.publish([strange]) == [.confirmed])
                }
                var ids: [String: Set<String>] = [:]
                for queue in [WorkQueue.rulesEvents.name, WorkQueue.rulesAppEvents(demo).name] {
                    while let delivery = try await administrator.get(queue) {
                        ids[queue, default: []].insert(delivery.properties.messageID ?? delivery.routingKey)
                    }
                }
                let (old, new) = (ids["rules.events"] ?? [], ids["rules.events.app.demo"] ?? [])
                #expect(old.union(new) == Set((0..<count).map(String.init) + ["strange.happened"]))
                #expect(old.contains("0") && new.contains("\(count - 1)"))
                #expect(old.contains("strange.happened") && !old.contains("\(count - 1)"))
            }
        }
    }

    /// Publishes each event once: an event without a queue would be returned.
    private static func publishEvents(
        _ count: Int, on bus: any MessageBus, _ confirmed: @escaping @Sendable () -> Void
    ) async throws {
        for id in 0..<count {
            let message = AMQPMessage(
                exchange: "events", routingKey: "demo.happened", properties: AMQPProperties(messageID: "\(id)"),
                body: [1])
            let answers = try await bus.publish([message])
            #expect(answers == [.confirmed])
            confirmed()
        }
    }

    /// Publishes each message as a retry and as a dead letter until both are confirmed.
    private static func publish(
        _ count: Int, on bus: any MessageBus, _ confirmed: @escaping @Sendable () -> Void
    ) async throws {
        for id in 0..<count {
            var left = ["retry.5s", "dead"].map { exchange in
                AMQPMessage(
                    exchange: exchange, routingKey: queue.name, properties: AMQPProperties(messageID: "\(id)"),
                    body: [1])
            }
            while !left.isEmpty {
                left = zip(left, try await bus.publish(left)).filter { $1 != .confirmed }.map(\.0)
            }
            confirmed()
        }
    }

    @Test func `an exchange with another difference is refused and unchanged`() async throws {
        try await TestBroker.withVirtualHost { url in
            let configuration = try AMQPConfiguration(url: url, connectionName: "migration tests")
            try await AMQPAdministrator.with(configuration, logger: .quiet) { administrator in
                try await administrator.declareExchange(name: "dead", kind: "headers")
                let error = await #expect(throws: AMQPError.self) {
                    try await Self.present.apply(using: administrator)
                }
                #expect(error?.code == .channelClosed(replyCode: 406))
                try await administrator.declareExchange(name: "dead", kind: "headers")
            }
        }
    }
}

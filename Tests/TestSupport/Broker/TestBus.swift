package import PushProtocol
import AMQP
import Logging
import Messaging

/// Publishes the input of a stage under test and takes its output.
package struct TestBus: Sendable {
    package let url: String
    private let administrator: AMQPAdministrator

    /// Runs `body` on a new virtual host with the topology of `apps`.
    package static func run(
        apps: [AppID], _ body: @Sendable (TestBus) async throws -> Void
    ) async throws {
        try await TestBroker.withVirtualHost { url in
            let configuration = try AMQPConfiguration(url: url, connectionName: "test")
            let logger = Logger(label: "test.bus") { _ in SwiftLogNoOpLogHandler() }
            try await AMQPAdministrator.with(configuration, logger: logger) { administrator in
                try await Topology(apps: apps).apply(using: administrator)
                try await body(TestBus(url: url, administrator: administrator))
            }
        }
    }

    /// Publishes a push as the registry does.
    package func publish(_ push: Push) async throws {
        _ = try await administrator.publish(
            AMQPMessage(
                exchange: ExchangeName.pushes.name, routingKey: RoutingKey.push(push.provider, push.lane, push.app),
                properties: AMQPProperties(), body: try push.wireBody()))
    }

    /// The number of ready messages and of consumers of `queue`.
    package func status(_ queue: String) async throws -> (messages: Int, consumers: Int) {
        try await administrator.queueStatus(queue) ?? (0, 0)
    }

    /// Takes outcomes from the queue of rules until there are `count`.
    package func outcomes(_ count: Int, within limit: Duration = .seconds(60)) async throws -> [Outcome] {
        var outcomes: [Outcome] = []
        while outcomes.count < count {
            let delivery = try await eventuallySome("\(count) outcomes (\(outcomes.count) came)", within: limit) {
                try await administrator.get(WorkQueue.rulesOutcomes.name)
            }
            outcomes += try Outcomes.decode(wireBody: delivery.body).outcomes
        }
        return outcomes
    }
}

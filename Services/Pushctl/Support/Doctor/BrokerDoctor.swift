import AMQP
import Foundation
import Messaging
import PushProtocol
import ServiceConnections
import ServiceKit

struct BrokerDoctor: Sendable {
    /// `nil`: the apps file could not be read.
    let catalog: AppCatalog?
    /// The broker's definitions; `nil` without `--definitions`.
    let export: BrokerExport?

    func findings() async -> [Finding] {
        guard let catalog else { return [.skipped("broker", "the apps file is needed to know the queues")] }
        let topology = catalog.topology
        guard Environment.isSet(.amqpURL) else {
            let finding = Finding.skipped(
                "broker", "AMQP_URL is not set", cure: "set AMQP_URL, with the broker's user topology")
            return [finding] + exported(topology, catalog.ids)
        }
        return await overAMQP(topology, catalog.workQueues) + exported(topology, catalog.ids)
    }

    private func exported(_ topology: Topology, _ apps: [AppID]) -> [Finding] {
        guard let export else {
            return [
                .skipped(
                    "broker-rights", "rights, policies, arguments and bindings cannot be read over AMQP",
                    cure: "\(BrokerExport.command) | pushctl doctor --definitions -")
            ]
        }
        return export.rights(BrokerDefinitions(apps: apps)) + export.policies() + export.arguments(topology)
    }

    private func overAMQP(_ topology: Topology, _ queues: [WorkQueue]) async -> [Finding] {
        do {
            let configuration = try brokerConfiguration()
            return try await AMQPAdministrator.with(configuration, logger: Environment.logger) { administrator in
                var findings: [Finding] = [.ok("broker", "accepts the login \(configuration.description)")]
                findings += try await topology.verify(using: administrator).map {
                    Finding.error("topology", "\($0)", cure: "run pushctl topology apply")
                }.orOK(
                    "topology", "all \(topology.exchanges.count) exchanges and \(topology.queues.count) queues exist")
                findings += try await Self.queues(queues, administrator)
                findings.append(await Self.clock(administrator))
                return findings
            }
        } catch let error as AMQPError {
            return [.error("broker", "\(error)", cure: Self.cure(error))]
        } catch {
            return [.error("broker", "\(error)", cure: "correct AMQP_URL")]
        }
    }

    private static func cure(_ error: AMQPError) -> String {
        switch error.code {
        case .refused:
            "check user, password and virtual host in AMQP_URL; pushctl topology definitions prints the users"
        case .tls: "check AMQP_CA_FILE and the host in AMQP_URL; the broker's certificate must name the host"
        case .channelClosed(replyCode: 403): "use the broker's user topology in AMQP_URL"
        default: "check that the broker runs, and host and port in AMQP_URL"
        }
    }

    /// Consumers and dead letters of each stage's queues.
    private static func queues(
        _ queues: [WorkQueue], _ administrator: AMQPAdministrator
    ) async throws(AMQPError) -> [Finding] {
        var without: [String] = []
        var dead: [String] = []
        var count = 0
        for queue in queues {
            if let status = try await administrator.queueStatus(queue.name), status.consumers == 0 {
                without.append("\(queue.name) (\(status.messages) messages)")
            }
            if let status = try await administrator.queueStatus(queue.deadName), status.messages > 0 {
                dead.append(queue.name)
                count += status.messages
            }
        }
        var findings: [Finding] = []
        if !without.isEmpty {
            findings.append(
                .warning(
                    "consumers", "no process consumes \(shortened(without))",
                    cure: "start the service that the queue's name begins with; a sender also leaves a paused route"))
        }
        if !dead.isEmpty {
            findings.append(
                .warning(
                    "dead-letters", "\(count) dead letters in \(shortened(dead))",
                    cure: "pushctl dead show \(dead[0]), then replay or drop"))
        }
        return findings.orOK("queues", "each of \(queues.count) work queues has a consumer and no dead letter")
    }

    /// At most three names, and the number of the others.
    private static func shortened(_ names: [String]) -> String {
        let rest = names.count > 3 ? " and \(names.count - 3) more" : ""
        return names.prefix(3).joined(separator: ", ") + rest
    }

    private static func clock(_ administrator: AMQPAdministrator) async -> Finding {
        let begun = Timestamp.now
        do {
            guard let time = try await BrokerClock.read(administrator) else {
                return .skipped("clocks", "the broker did not return its time within five seconds")
            }
            let error = (Timestamp.now - begun) + BrokerClock.precision
            return ClockComparison.finding("the broker", difference: time - begun, error: error)
        } catch {
            return .skipped(
                "clocks", "the broker's time cannot be read: \(error)", cure: "use the broker's user topology")
        }
    }
}

/// The broker's clock. AMQP has no request for it, but the broker writes the time into each dead letter.
enum BrokerClock {
    /// The broker writes whole seconds.
    static let precision = Duration.seconds(1)
    private static let patience = Duration.seconds(5)

    /// Lets a message expire in a queue of its own, and returns the time in its `x-death` header
    /// (https://www.rabbitmq.com/docs/dlx#effects); `nil` if it does not arrive. Needs the rights of the user
    /// `topology`. The broker deletes both queues after a minute, should this process end early.
    static func read(_ administrator: AMQPAdministrator) async throws -> Timestamp? {
        let name = "pushctl.doctor.\(UUID().uuidString.lowercased())"
        let source = "\(name).expiring"
        try await administrator.declareQueue(name: name, arguments: ["x-expires": 60_000])
        try await administrator.declareQueue(
            name: source,
            arguments: [
                "x-expires": 60_000, "x-message-ttl": 0, "x-dead-letter-exchange": "",
                "x-dead-letter-routing-key": .text(name),
            ])
        let time: Result<Timestamp?, any Error>
        do {
            _ = try await administrator.publish(AMQPMessage(exchange: "", routingKey: source, body: []))
            time = .success(try await expiry(in: name, administrator))
        } catch {
            time = .failure(error)
        }
        for queue in [name, source] { try? await administrator.deleteQueue(queue) }
        return try time.get()
    }

    private static func expiry(in queue: String, _ administrator: AMQPAdministrator) async throws -> Timestamp? {
        let deadline = ContinuousClock.now + patience
        while ContinuousClock.now < deadline {
            if let delivery = try await administrator.get(queue) {
                guard case .array(let deaths)? = delivery.properties.headers["x-death"],
                    case .table(let death)? = deaths.first, case .timestamp(let seconds)? = death["time"]
                else { return nil }
                return Timestamp(milliseconds: 1000 * seconds)
            }
            try await Task.sleep(for: .milliseconds(20))
        }
        return nil
    }
}

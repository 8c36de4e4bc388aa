import AMQP
import Logging
import Messaging
import PushProtocol
import Testing
import TestSupport

@Suite(.enabled(if: TestBroker.isAvailable, "needs a broker"), .timeLimit(.minutes(2)))
struct TopologyOnBrokerTests {
    private let topology = Topology(apps: [demo])

    private func withAdministrator(_ body: @Sendable (AMQPAdministrator) async throws -> Void) async throws {
        try await TestBroker.withVirtualHost { url in
            let configuration = try AMQPConfiguration(url: url, connectionName: "topology tests")
            try await AMQPAdministrator.with(configuration, logger: .quiet, body)
        }
    }

    @Test func `applying a topology is idempotent and verifies`() async throws {
        try await withAdministrator { administrator in
            let before = try await topology.verify(using: administrator)
            #expect(before.count == topology.exchanges.count + topology.queues.count)
            try await topology.apply(using: administrator)
            try await topology.apply(using: administrator)
            #expect(try await topology.verify(using: administrator) == [])
        }
    }

    @Test func `missing objects are named with the command that creates them`() async throws {
        try await withAdministrator { administrator in
            try await topology.apply(using: administrator)
            try await administrator.deleteQueue("rules.events.dead")
            try await administrator.deleteExchange("pushes")
            let problems = try await topology.verify(using: administrator)
            #expect(problems == [.missingExchange("pushes"), .missingQueue("rules.events.dead")])
            #expect(problems.allSatisfy { $0.description.contains("pushctl topology apply") })
        }
    }

    /// First with the policy's TTL, then with a shorter one. The policy applies to existing queues.
    @Test func `the policy expires dead letters and no other messages`() async throws {
        try await TestBroker.withVirtualHost { url in
            let host = String(url.split(separator: "/").last ?? "")
            let policy = Topology.deadLetters
            func set(milliseconds: Int64) async throws {
                try await TestBroker.control(
                    "set_policy", "-p", host, "--apply-to", "queues", "--priority", "\(policy.priority)", policy.name,
                    policy.pattern, #"{"message-ttl":\#(milliseconds)}"#)
            }
            let configuration = try AMQPConfiguration(url: url, connectionName: "topology tests")
            let topology = topology
            try await AMQPAdministrator.with(configuration, logger: .quiet) { try await topology.apply(using: $0) }
            guard case .number(let kept)? = policy.definition["message-ttl"] else {
                Issue.record("the policy has no time")
                return
            }
            try await set(milliseconds: kept)
            try await eventually("the policy on every dead-letter queue") {
                let queues = try await TestBroker.control(
                    "list_queues", "-p", host, "--no-table-headers", "name", "policy")
                let held = queues.split(separator: "\n").filter { $0.hasSuffix("\tdead-letters") }
                return Set(held.compactMap { $0.split(separator: "\t").first.map(String.init) })
                    == Set(WorkQueue.all(apps: [demo]).map(\.deadName))
            }
            try await set(milliseconds: 100)
            try await AMQPAdministrator.with(configuration, logger: .quiet) { administrator in
                for (exchange, key) in [("dead", "rules.events"), ("return", "rules.events")] {
                    let message = AMQPMessage(exchange: exchange, routingKey: key, body: [1])
                    #expect(try await administrator.publish(message) == .confirmed)
                }
                try await eventually("the expiry of the dead letter") {
                    try await administrator.queueStatus("rules.events.dead")?.messages == 0
                }
                #expect(try await administrator.queueStatus("rules.events")?.messages == 1)
            }
        }
    }

    @Test func `a queue with other arguments is refused and unchanged`() async throws {
        try await withAdministrator { administrator in
            try await administrator.declareQueue(name: "rules.events", arguments: ["x-queue-type": "quorum"])
            let error = await #expect(throws: AMQPError.self) { try await topology.apply(using: administrator) }
            #expect(error?.code == .channelClosed(replyCode: 406))
            #expect(error?.detail.contains("rules.events") == true)
        }
    }
}

@Suite struct TopologyPartTests {
    @Test func `a stage verifies its own queues and the queues bound to its exchanges`() {
        let part = Topology(apps: [demo]).subset(consuming: [.rulesEvents], publishingTo: [.notifications])
        #expect(Set(part.exchanges.map(\.name)).isSuperset(of: ["notifications", "dead", "return", "retry.5s"]))
        #expect(!part.exchanges.contains { $0.name == "pushes" })
        let work = part.queues.map(\.name).filter { !$0.hasPrefix("retry.") }
        let boundQueues = ["interactive", "bulk"].flatMap { lane in
            ["token-registry.notifications.\(lane)", "token-registry.notifications.\(lane).app.demo"]
        }
        let exchanges = ["notifications.by-app", "notifications.other-apps"]
        #expect(Set(part.exchanges.map(\.name)).isSuperset(of: exchanges))
        #expect(Set(work) == Set(["rules.events", "rules.events.dead", "senders.revocations"] + boundQueues))
        let sender = Topology(apps: [demo]).subset(consuming: [], publishingTo: [], reading: [.senderRevocations])
        #expect(sender.queues.contains { $0.name == "senders.revocations" })
        #expect(sender.exchanges.contains { $0.name == "marks" } && !part.exchanges.contains { $0.name == "marks" })
    }
}

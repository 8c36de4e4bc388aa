import PushProtocol
import Testing

@Suite struct TopologyTests {
    static let apps = ["family-portal", "hide-and-seek"].compactMap(AppID.init(rawValue:))
    static let topology = Topology(apps: apps)

    @Test func `every binding joins an exchange and a queue that exist`() {
        let exchanges = Set(Self.topology.exchanges.map(\.name))
        let queues = Set(Self.topology.queues.map(\.name))
        #expect(exchanges.count == Self.topology.exchanges.count && queues.count == Self.topology.queues.count)
        for binding in Self.topology.bindings {
            #expect(exchanges.contains(binding.exchange) && queues.contains(binding.queue))
        }
    }

    @Test func `every work queue can be returned to and given up from`() {
        for queue in WorkQueue.all(apps: Self.apps) {
            let bindings = Self.topology.bindings
            #expect(bindings.contains(.init(exchange: "return", queue: queue.name, routingKey: queue.name)))
            #expect(bindings.contains(.init(exchange: "dead", queue: queue.deadName, routingKey: queue.name)))
        }
    }

    @Test func `every queue declares itself quorum, but streams, and a work queue its delivery limit`() {
        let streams = Set(StreamName.allCases.map(\.rawValue))
        for queue in Self.topology.queues {
            let type = streams.contains(queue.name) ? "stream" : "quorum"
            #expect(queue.arguments["x-queue-type"] == .text(type))
        }
        let limited = Self.topology.queues.filter { $0.arguments["x-delivery-limit"] == .number(20) }
        #expect(limited.count == WorkQueue.all(apps: Self.apps).count)
    }

    @Test func `feedback hears every disposition, but of acceptances only those elsewhere`() {
        let heard = Self.topology.bindings.filter { $0.queue == "feedback.outcomes" && $0.exchange == "outcomes" }
        #expect(
            Set(heard.map(\.routingKey)) == [
                "*.unregistered", "*.rejected", "*.throttled", "*.misconfigured", "*.expired", "*.skipped", "*.unknown",
                "*.accepted.elsewhere",
            ])
    }

    @Test func `rules hear who was erased, feedback which registrations were, and nothing else of devices`() {
        for (queue, key) in [("rules.erasures", "event.user-erased"), ("feedback.erasures", "event.erased")] {
            let heard = Self.topology.bindings.filter { $0.queue == queue && $0.exchange != "return" }
            #expect(heard == [.init(exchange: "devices", queue: queue, routingKey: key)])
        }
    }

    @Test func `senders hear of every event that can revoke a push, and find the end of what they read`() {
        let heard = Self.topology.bindings.filter { $0.queue == "senders.revocations" }
        #expect(
            Set(heard.map { "\($0.exchange) \($0.routingKey)" }) == [
                "devices event.replaced", "devices event.signed-out", "devices event.erased",
                "notifications revoked.#", "marks senders.revocations",
            ])
        let stream = Self.topology.queues.first { $0.name == "senders.revocations" }
        #expect(stream?.arguments["x-max-age"] == .text("604800s"))
        #expect(stream?.arguments["x-max-length-bytes"] == .number(1_000_000_000))
    }

    @Test func `senders read the revocations and nobody else, and only they publish marks`() throws {
        for role in BusRole.allCases where role != .topology {
            let isSender = role == .apnsSender || role == .fcmSender
            let (read, write) = (try Regex(role.permissions.read), try Regex(role.permissions.write))
            for stream in StreamName.allCases {
                #expect((stream.rawValue.wholeMatch(of: read) != nil) == isSender, "\(role)")
                #expect(stream.rawValue.wholeMatch(of: write) == nil, "\(role)")
            }
            #expect(("marks".wholeMatch(of: write) != nil) == isSender, "\(role)")
        }
    }

    @Test(arguments: [
        (Duration.zero, RetryLevel.seconds5), (.seconds(5), .seconds5), (.seconds(6), .seconds30),
        (.seconds(900), .minutes15), (.seconds(901), .hour1), (.seconds(1_000_000), .hours6),
    ])
    func `a delay takes the shortest level that is long enough`(delay: Duration, level: RetryLevel) {
        #expect(RetryLevel(atLeast: delay) == level)
    }

    /// An app may be called `dead`: what waits to be worked off for it must not be taken for dead letters.
    @Test func `dead letters are kept for two weeks, by a policy about all of them and nothing else`() throws {
        let policy = Topology.deadLetters
        #expect(policy.definition == ["message-ttl": .number(1_209_600_000)])
        let apps = Self.apps + ["dead", "x-dead", "bulk"].compactMap(AppID.init(rawValue:))
        let pattern = try Regex(policy.pattern)
        let meant = Topology(apps: apps).queues.map(\.name).filter { $0.firstMatch(of: pattern) != nil }
        #expect(meant == WorkQueue.all(apps: apps).map(\.deadName))
    }

    @Test func `only the topology role may declare`() {
        for role in BusRole.allCases where role != .topology { #expect(role.permissions.configure == "^$") }
    }

    @Test func `a stage may read its own queues and no other`() throws {
        let readers: [BusRole: (WorkQueue) -> Bool] = [
            .rules: { [.rulesEvents, .rulesOutcomes, .rulesErasures].contains($0) },
            .tokenRegistry: { $0.name.hasPrefix("token-registry.") },
            .apnsSender: { $0.name.hasPrefix("apns-sender.") },
            .fcmSender: { $0.name.hasPrefix("fcm-sender.") },
            .feedback: { [.feedbackOutcomes, .feedbackErasures].contains($0) },
            .upstream: { _ in false },
        ]
        for (role, expected) in readers {
            let pattern = try Regex(role.permissions.read)
            for queue in WorkQueue.all(apps: Self.apps) {
                #expect((queue.name.wholeMatch(of: pattern) != nil) == expected(queue), "\(role) \(queue.name)")
                #expect(queue.deadName.wholeMatch(of: pattern) == nil)
            }
        }
    }
}

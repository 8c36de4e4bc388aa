import PushProtocol
import Testing

@Suite struct TopologyTests {
    static let apps = ["family-portal", "hide-and-seek"].compactMap(AppID.init(rawValue:))
    static let topology = Topology(apps: apps)
    /// The first app has a queue of its upstream, and two webhooks.
    static let reports = ReportConsumers(
        upstreams: [apps[0]],
        webhooks: [
            .init(app: apps[0], name: WebhookName(rawValue: "crm")!, kinds: Set(ReportKind.allCases)),
            .init(app: apps[0], name: WebhookName(rawValue: "devices")!, kinds: [.deadDevice]),
        ])

    @Test func `every binding joins an existing exchange and queue`() {
        let exchanges = Set(Self.topology.exchanges.map(\.name))
        let queues = Set(Self.topology.queues.map(\.name))
        #expect(exchanges.count == Self.topology.exchanges.count && queues.count == Self.topology.queues.count)
        for binding in Self.topology.bindings {
            #expect(exchanges.contains(binding.exchange) && queues.contains(binding.queue))
        }
    }

    /// An app may have any name, including that of a part of a queue's name.
    @Test func `queue names are unique, whatever the apps' names`() {
        let apps = ["dead", "app", "events", "bulk", "interactive", "devices"].compactMap(AppID.init(rawValue:))
        let names = Topology(apps: apps).queues.map(\.name)
        #expect(Set(names).count == names.count)
    }

    @Test func `each input has an exchange that routes by app, and one for other apps`() {
        for input in ["events", "notifications", "devices"] {
            let divides = Self.topology.exchanges.first { $0.name == "\(input).by-app" }
            #expect(divides?.alternate == "\(input).other-apps")
            #expect(Self.topology.exchanges.contains { $0.name == "\(input).other-apps" })
            #expect(
                Self.topology.exchangeBindings.contains { $0.source == input && $0.destination == "\(input).by-app" })
        }
        // A queue of all apps is not bound to an input exchange; it would get a copy of each message.
        let inputs: Set = ["events", "notifications"]
        let streams = Set(StreamName.allCases.map(\.rawValue))
        #expect(Self.topology.bindings.allSatisfy { !inputs.contains($0.exchange) || streams.contains($0.queue) })
        for app in Self.apps {
            let own = Self.topology.bindings.filter { $0.queue == "rules.events.app.\(app)" && $0.exchange != "return" }
            #expect(own == [.init(exchange: "events.by-app", queue: own[0].queue, routingKey: "\(app).#")])
        }
    }

    @Test func `every work queue has a binding for returned retries and one for its dead letters`() {
        for queue in WorkQueue.all(apps: Self.apps) {
            let bindings = Self.topology.bindings
            #expect(bindings.contains(.init(exchange: "return", queue: queue.name, routingKey: queue.name)))
            #expect(bindings.contains(.init(exchange: "dead", queue: queue.deadName, routingKey: queue.name)))
        }
    }

    @Test func `all queues are quorum queues except streams, and work queues have a delivery limit`() {
        let streams = Set(StreamName.allCases.map(\.rawValue))
        for queue in Self.topology.queues {
            let type = streams.contains(queue.name) ? "stream" : "quorum"
            #expect(queue.arguments["x-queue-type"] == .text(type))
        }
        let limited = Self.topology.queues.filter { $0.arguments["x-delivery-limit"] == .number(20) }
        #expect(limited.count == WorkQueue.all(apps: Self.apps).count)
    }

    @Test func `feedback receives every disposition, but acceptances only in another environment`() {
        let heard = Self.topology.bindings.filter { $0.queue == "feedback.outcomes" && $0.exchange == "outcomes" }
        #expect(
            Set(heard.map(\.routingKey)) == [
                "*.unregistered", "*.rejected", "*.throttled", "*.misconfigured", "*.expired", "*.skipped", "*.unknown",
                "*.accepted.elsewhere",
            ])
    }

    @Test func `rules receive erased users, feedback erased registrations, and no other device events`() {
        for (queue, key) in [("rules.erasures", "event.user-erased"), ("feedback.erasures", "event.erased")] {
            let heard = Self.topology.bindings.filter { $0.queue == queue && $0.exchange != "return" }
            #expect(heard == [.init(exchange: "devices", queue: queue, routingKey: key)])
        }
    }

    @Test func `senders receive every event that revokes a push, and their stream markers`() {
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

    @Test func `only senders read revocations and publish markers`() throws {
        for role in BusRole.allCases where role != .topology {
            let isSender = [.apnsSender, .fcmSender, .webPushSender].contains(role)
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

    /// An app may be called `dead`; its work queues must not match.
    @Test func `a policy keeps dead letters for two weeks and matches no other queue`() throws {
        let policy = Topology.deadLetters
        #expect(policy.definition == ["message-ttl": .number(1_209_600_000)])
        let apps = Self.apps + ["dead", "x-dead", "bulk"].compactMap(AppID.init(rawValue:))
        let pattern = try Regex(policy.pattern)
        let meant = Topology(apps: apps, reports: Self.reports).queues.map(\.name)
            .filter { $0.firstMatch(of: pattern) != nil }
        #expect(meant == WorkQueue.all(apps: apps, reports: Self.reports).map(\.deadName))
    }

    @Test func `dead pushes expire with revocations, by a policy of higher priority`()
        throws
    {
        let policy = Topology.deadPushes
        #expect(policy.definition == ["message-ttl": .number(StreamName.senderRevocations.retention.wholeMilliseconds)])
        #expect(policy.priority > Topology.deadLetters.priority)
        let apps = Self.apps + ["dead", "x-dead", "bulk"].compactMap(AppID.init(rawValue:))
        let pattern = try Regex(policy.pattern)
        let meant = Topology(apps: apps).queues.map(\.name).filter { $0.firstMatch(of: pattern) != nil }
        let senders = WorkQueue.all(apps: apps).filter { if case .senderPushes = $0 { true } else { false } }
        #expect(meant == senders.map(\.deadName))
        for queue in WorkQueue.all(apps: apps) {
            #expect(
                Topology.deadLetterRetention(in: queue)
                    == (senders.contains(queue) ? StreamName.senderRevocations.retention : Topology.deadLetterRetention)
            )
        }
    }

    @Test func `only the topology role may declare`() {
        for role in BusRole.allCases where role != .topology { #expect(role.permissions.configure == "^$") }
    }

    @Test func `retries and dead letters use topic exchanges, by queue name`() {
        let exchanges = Self.topology.exchanges.filter { $0.name.hasPrefix("retry.") || $0.name == "dead" }
        #expect(exchanges.count == RetryLevel.allCases.count + 1)
        #expect(exchanges.allSatisfy { $0.kind == .topic && $0.formerKind != nil })
        for level in RetryLevel.allCases {
            let taken = Self.topology.bindings.filter { $0.exchange == "retry.\(level.rawValue)" }
            #expect(taken == [.init(exchange: taken[0].exchange, queue: level.queueName, routingKey: "#")])
        }
    }

    @Test func `a stage may publish retries and dead letters only under its own queues' names`() throws {
        let guarded = RetryLevel.allCases.map { ExchangeName.retry($0) } + [.dead]
        for role in BusRole.allCases where ![.topology, .deadLetters, .upstream, .eventsAPI].contains(role) {
            let read = try Regex(role.permissions.read)
            for exchange in guarded {
                let topics = role.topicPermissions.filter { $0.exchange == exchange }
                #expect(topics.count == 1, "\(role) \(exchange)")
                let write = try Regex(try #require(topics.first).write)
                for name in WorkQueue.all(apps: Self.apps, reports: Self.reports).map(\.name) + [
                    "senders.revocations", "x",
                ] {
                    let isOwn = name.wholeMatch(of: read) != nil && name != "senders.revocations"
                    #expect((name.wholeMatch(of: write) != nil) == isOwn, "\(role) \(exchange) \(name)")
                }
            }
        }
    }

    @Test func `the registry publishes pages of segments and no other events, and rules copies of any event`() throws {
        func publishes(_ role: BusRole, _ key: String) throws -> Bool {
            let topic = try #require(role.topicPermissions.first { $0.exchange == .events })
            return key.firstMatch(of: try Regex(topic.write)) != nil
        }
        for key in ["shop.heliograph.segment.page", "shop.order.ready", "shopXheliographXsegmentXpage", "shop."] {
            #expect(try publishes(.tokenRegistry, key) == (key == "shop.heliograph.segment.page"), "\(key)")
            #expect(try publishes(.rules, key) == (key.hasPrefix("shop.") && key != "shop."), "\(key)")
        }
        for role in [BusRole.apnsSender, .fcmSender, .webPushSender, .feedback, .webhookSender] {
            #expect(!role.topicPermissions.contains { $0.exchange == .events }, "\(role)")
        }
    }

    @Test func `a stage may read only its own queues`() throws {
        let readers: [BusRole: (WorkQueue) -> Bool] = [
            .rules: { $0.name.hasPrefix("rules.") },
            .tokenRegistry: { $0.name.hasPrefix("token-registry.") },
            .apnsSender: { $0.name.hasPrefix("apns-sender.") },
            .fcmSender: { $0.name.hasPrefix("fcm-sender.") },
            .webPushSender: { $0.name.hasPrefix("webpush-sender.") },
            .feedback: { [.feedbackOutcomes, .feedbackErasures].contains($0) },
            .deadLetters: { _ in false },
            .upstream: { _ in false },
            .eventsAPI: { _ in false },
            .webhookSender: { $0.name.hasPrefix("webhook-sender.") },
        ]
        for (role, expected) in readers {
            let pattern = try Regex(role.permissions.read)
            for queue in WorkQueue.all(apps: Self.apps, reports: Self.reports) {
                #expect((queue.name.wholeMatch(of: pattern) != nil) == expected(queue), "\(role) \(queue.name)")
                #expect((queue.deadName.wholeMatch(of: pattern) != nil) == (role == .deadLetters))
            }
        }
    }

    @Test func `only apps that ask for reports have queues of reports`() {
        let names = Topology(apps: Self.apps, reports: Self.reports).queues.map(\.name)
        let further = Set(names).subtracting(Self.topology.queues.map(\.name))
        #expect(
            further == [
                "upstream.reports.family-portal", "webhook-sender.reports.family-portal.crm",
                "webhook-sender.reports.family-portal.crm.dead", "webhook-sender.reports.family-portal.devices",
                "webhook-sender.reports.family-portal.devices.dead",
            ])
    }

    @Test func `a queue of reports gets the kinds that its reader asks for, of its app`() {
        let topology = Topology(apps: Self.apps, reports: Self.reports)
        func keys(_ queue: String, _ bindings: [Topology.Binding]) -> Set<String> {
            Set(
                bindings.filter { $0.queue == queue && !["return", "dead"].contains($0.exchange) }
                    .map { "\($0.exchange) \($0.routingKey)" })
        }
        let all: Set = [
            "notifications event.reported.family-portal", "notifications event.receipt.family-portal",
            "devices report.dead.family-portal",
        ]
        #expect(keys("upstream.reports.family-portal", topology.bindings) == all)
        #expect(keys("webhook-sender.reports.family-portal.crm", topology.bindings) == all)
        let devices = "webhook-sender.reports.family-portal.devices"
        #expect(keys(devices, topology.bindings) == ["devices report.dead.family-portal"])
        // Bindings of an earlier apps file.
        #expect(keys(devices, topology.retired) == all.subtracting(["devices report.dead.family-portal"]))
        #expect(keys("upstream.reports.family-portal", topology.retired) == [])
        #expect(keys("upstream.reports.hide-and-seek", topology.retired).count == 3)
    }

    @Test func `an upstream that does not read its reports fills nothing`() {
        let queue = Topology(apps: Self.apps, reports: Self.reports).queues
            .first { $0.name == "upstream.reports.family-portal" }
        #expect(
            queue?.arguments == [
                "x-queue-type": .text("quorum"), "x-overflow": .text("drop-head"), "x-max-length": .number(100_000),
                "x-message-ttl": .number(604_800_000),
            ])
    }

    @Test func `an upstream reads the reports of its app only`() throws {
        let pattern = try Regex(BusRole.upstreamPermissions(of: Self.apps[0]).read)
        let others = [
            "upstream.reports.hide-and-seek", "upstream-reports.family-portal", "upstream.reports.family-portal-2",
        ]
        #expect("upstream.reports.family-portal".wholeMatch(of: pattern) != nil)
        for name in others + WorkQueue.all(apps: Self.apps, reports: Self.reports).map(\.name) {
            #expect(name.wholeMatch(of: pattern) == nil, "\(name)")
        }
    }
}

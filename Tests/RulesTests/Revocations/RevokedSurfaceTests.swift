import AMQP
import DecisionLog
import Foundation
import Messaging
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// Revocations of starts of live surfaces, on a real database.
@Suite(.timeLimit(.minutes(5))) struct RevokedSurfaceTests {
    static let rules = """
        app: test
        events:
          order.accepted: &order { examples: [{ order: { id: o, minutes: 25 }, users: [u] }] }
          order.ready: *order
          courier.moved: *order
          order.withdrawn: *order
          order.delivered: *order
        revoke:
          - { event: order.withdrawn, item: "live/delivery/{{order.id}}" }
        live:
          delivery:
            to: { users: users }
            item: "{{order.id}}"
            on: [apple, android]
            lane: bulk
            title: Your order
            attributes-type: DeliveryAttributes
            state: { minutes: "{{order.minutes}}" }
            start: { event: order.accepted }
            update:
              - { event: order.ready }
              - { event: courier.moved, every: 10s }
            end: { event: order.delivered }
        rules: {}
        """

    /// The rules, a database and the worker.
    struct Fixture {
        let gathering: GatheringTests.GatheringFixture
        let revoker: NotificationRevoker

        func happen(_ type: String, _ id: String, at time: String, users: String = #"["a","b"]"#) async throws {
            try await gathering.handleEvent(
                type, #"{"order":{"id":"o","minutes":9},"users":\#(users)}"#, id: id,
                at: "2026-01-10T\(time)Z")
            try await gathering.pool.execute("UPDATE rules.decision SET decided_at = clock_timestamp()")
        }

        func revoke(_ target: RevocationRequest.Target, user: String? = nil) async throws {
            let request = RevocationRequest(
                app: AppID(rawValue: "test")!, target: target, user: user.flatMap { UserID(rawValue: $0) })
            _ = try await RevocationLog(gathering.pool).record(request, by: .commandLine)
            try await revoker.revokeDue()
        }

        /// The ends as `<rule> <users>`, sorted.
        func ends() throws -> [String] {
            try messages().map { message in
                "\(message.rule) \(message.recipients.map(\.user.rawValue).sorted().joined(separator: ","))"
            }.sorted()
        }

        func messages() throws -> [PushProtocol.Notification] {
            try gathering.bus.messages(in: WorkQueue.registryNotifications(.bulk).name).map {
                try PushProtocol.Notification.decode(wireBody: $0.body)
            }
        }

        /// The last decisions about an event's notifications, as `<rule> <user> <answer> <reason>`, sorted.
        func decisions(_ event: String) async throws -> [String] {
            try await gathering.pool.query(
                """
                SELECT DISTINCT ON (notification) rule || ' ' || user_id || ' ' || answer || ' ' || reason
                FROM rules.decision JOIN rules.event ON event.key = decision.event WHERE event.id = \(event)
                ORDER BY notification, step DESC
                """
            ).map { try $0.decode(String.self, at: 0) }.sorted()
        }

        func held() async throws -> Int { try await RulesDatabase.count("rules.held", gathering.pool) }
    }

    private func with(_ body: (Fixture) async throws -> Void) async throws {
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            let gathering = try GatheringTests.GatheringFixture(pool, Self.rules)
            let revoker = NotificationRevoker(
                service: "rules", store: RevocationStore(pool: pool, logger: .silent),
                currentRules: gathering.currentRules, bus: gathering.bus, now: { gathering.clock.now }, logger: .silent)
            try await body(Fixture(gathering: gathering, revoker: revoker))
        }
    }

    @Test func `given the event of a start, then its surfaces end and waiting updates are dropped`() async throws {
        try await with { fixture in
            try await fixture.happen("order.accepted", "start", at: "12:00:00")
            try await fixture.happen("courier.moved", "moved", at: "12:00:01")
            #expect(try await fixture.held() == 8)
            try await fixture.revoke(.event("start"))
            #expect(try await fixture.held() == 0)
            #expect(try fixture.ends() == ["delivery-end a,b", "delivery-end-message a,b"])
            let messages = try fixture.messages()
            let activity = try #require(messages.first { $0.rule == "delivery-end" })
            let seconds = fixture.gathering.clock.now.seconds
            #expect(activity.scope == "o" && activity.lane == .bulk)
            let aps: JSONValue = ["event": "end", "timestamp": .int(seconds), "dismissal-date": .int(seconds)]
            #expect(activity.content.apns?.payload?["aps"] == aps)
            let message = try #require(messages.first { $0.rule == "delivery-end-message" })
            #expect(message.devices?.platforms == [.android])
            #expect(message.content.silent && message.content.data?["live_event"] == "end")
            #expect(message.content.data?["live"] == "delivery" && message.content.data?["live_item"] == "o")
            let decisions = try await fixture.decisions("start")
            #expect(decisions.contains("delivery-end a push surface-ended"))
            #expect(decisions.contains("delivery-timeout a drop revoked"))
            #expect(try await fixture.decisions("moved").allSatisfy { $0.hasSuffix("drop revoked") })
            // A clear command would not reach a Live Activity.
            #expect(try await RulesDatabase.count("rules.shown_copy", fixture.gathering.pool) == 0)
        }
    }

    @Test func `given a revoked surface, then later updates are dropped until the next start`() async throws {
        try await with { fixture in
            try await fixture.happen("order.accepted", "start", at: "12:00:00")
            try await fixture.revoke(.event("start"))
            try await fixture.happen("order.ready", "ready", at: "12:05:00")
            let dropped = try await fixture.decisions("ready")
            #expect(dropped.count == 8 && dropped.allSatisfy { $0.hasSuffix("drop revoked") }, "\(dropped)")
            try await fixture.happen("order.accepted", "again", at: "12:10:00")
            try await fixture.happen("order.ready", "ready again", at: "12:15:00")
            #expect(try await fixture.decisions("again").contains("delivery-start a push wanted"))
            #expect(try await fixture.decisions("ready again").contains("delivery-update a push noiseless"))
            // The first surface is revoked again, and the second one stays.
            let held = try await fixture.held()
            try await fixture.revoke(.event("start"), user: "a")
            #expect(try await fixture.held() == held)
            #expect(try fixture.messages().count == 2)
        }
    }

    @Test func `given one user's notification, then only that user's surface ends, on all platforms`() async throws {
        try await with { fixture in
            try await fixture.happen("order.accepted", "start", at: "12:00:00")
            let notification = try await fixture.gathering.pool.query(
                "SELECT notification FROM rules.decision WHERE rule = 'delivery-start' AND user_id = 'a'"
            ).single(UUID.self)
            try await fixture.revoke(.notification(notification))
            #expect(try fixture.ends() == ["delivery-end a", "delivery-end-message a"])
            try await fixture.happen("order.ready", "ready", at: "12:05:00")
            let decisions = try await fixture.decisions("ready")
            #expect(decisions.contains("delivery-update a drop revoked"))
            #expect(decisions.contains("delivery-update b push noiseless"))
        }
    }

    @Test func `given an event under revoke with the item of the entry, then the surfaces end`() async throws {
        try await with { fixture in
            try await fixture.happen("order.accepted", "start", at: "12:00:00")
            try await fixture.happen("order.withdrawn", "withdrawn", at: "12:01:00")
            try await fixture.revoker.revokeDue()
            #expect(try fixture.ends() == ["delivery-end a,b", "delivery-end-message a,b"])
            #expect(try await fixture.held() == 0)
        }
    }

    @Test func `given a surface that has ended, then its revocation sends nothing`() async throws {
        try await with { fixture in
            try await fixture.happen("order.accepted", "start", at: "12:00:00")
            try await fixture.happen("order.delivered", "end", at: "12:30:00")
            try await fixture.revoke(.event("start"))
            #expect(try fixture.messages().isEmpty)
        }
    }

    @Test func `given a broker that does not confirm, then the same ends are sent again`() async throws {
        try await with { fixture in
            try await fixture.happen("order.accepted", "start", at: "12:00:00")
            // Without the stream's binding the broker returns the revocations.
            var topology = Topology(apps: [AppID(rawValue: "test")!])
            topology.bindings.removeAll { $0.queue == StreamName.senderRevocations.rawValue }
            let unbound = InMemoryBus(topology: topology)
            let first = NotificationRevoker(
                service: "rules", store: fixture.revoker.store, currentRules: fixture.revoker.currentRules,
                bus: unbound, now: fixture.revoker.now, logger: .silent)
            _ = try await RevocationLog(fixture.gathering.pool).record(
                RevocationRequest(app: AppID(rawValue: "test")!, target: .event("start")), by: .commandLine)
            try await first.revokeDue()
            let pool = fixture.gathering.pool
            try await pool.execute("UPDATE rules.revocation SET due_at = '-infinity' WHERE due_at IS NOT NULL")
            try await fixture.revoker.revokeDue()
            #expect(try fixture.ends() == ["delivery-end a,b", "delivery-end-message a,b"])
            #expect(try await RulesDatabase.count("rules.decision WHERE reason = 'surface-ended'", pool) == 4)
        }
    }
}

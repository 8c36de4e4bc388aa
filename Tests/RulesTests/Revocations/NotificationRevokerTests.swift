import AMQP
import DecisionLog
import Foundation
import HTTPTypes
import Messaging
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// Revocations by operators, over HTTP and on a real database.
@Suite(.timeLimit(.minutes(5))) struct NotificationRevokerTests {
    static let path = "/v1/operator/revocations"
    private let bus = InMemoryBus(apps: [RulesHTTP.app])

    private func revoker(_ http: RulesHTTP, on other: InMemoryBus? = nil, step: Int = 5000) -> NotificationRevoker {
        NotificationRevoker(
            service: "rules", store: RevocationStore(pool: http.pool, step: step, logger: .silent),
            currentRules: CurrentRules(RuleSets([])), bus: other ?? bus, now: { http.clock.now }, logger: .silent)
    }

    /// Decides about events to users. The database's clock compares ages, so decisions are dated by it.
    private func publish(_ http: RulesHTTP, _ ids: [String], users: String = "[1,2]") async throws {
        for id in ids { _ = try await http.fixture.handleEvent(id, users: users) }
        try await http.pool.execute("UPDATE rules.decision SET decided_at = clock_timestamp()")
    }

    private func notifications(_ http: RulesHTTP, _ event: String, user: String? = nil) async throws -> Set<UUID> {
        Set(
            try await http.pool.query(
                """
                SELECT notification FROM rules.decision JOIN rules.event ON event.key = decision.event
                WHERE event.id = \(event) AND coalesce(user_id = \(user), true)
                """
            ).map { try $0.decode(UUID.self, at: 0) })
    }

    /// The notifications that the stream of revocations names, with repeats.
    private func revoked(_ bus: InMemoryBus? = nil) throws -> [UUID] {
        try (bus ?? self.bus).messages(in: StreamName.senderRevocations.rawValue).flatMap {
            try NotificationRevocation.decode(wireBody: $0.body).notifications
        }
    }

    private func key(_ http: RulesHTTP) async throws -> String {
        try await http.key(1, for: [.revokeNotifications])
    }

    @Test func `given pushed notifications, then their ids are published and their inbox items removed`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            let key = try await key(http)
            try await publish(http, ["a", "b"])
            let body: JSONValue = ["app": "test", "event": "a", "reason": "wrong text"]
            let first = try await http.send(.post, Self.path, body, user: key)
            #expect(first.status == 202)
            #expect(first.body["ended_at"] == .null && first.body["requested_by"] == "test")
            #expect(first.body["reason"] == "wrong text" && first.body["source"] == "operator")
            try await revoker(http).revokeDue()
            #expect(try await Set(revoked()) == notifications(http, "a"))
            #expect(try await http.inbox().count == 1)
            #expect(try await http.unread() == 1)
            #expect(try await RulesDatabase.count("rules.badge", http.pool) == 2)
            // A repeat has no effect, and the answer has the state.
            let second = try await http.send(.post, Self.path, body, user: key)
            #expect(second.status == 200 && second.body["id"] == first.body["id"])
            #expect(second.body["ended_at"] != .null)
            let effect: JSONValue = [
                "held": 0, "gathered": 0, "fan_outs": 0, "pushes": 2, "shown": 0, "inbox_items": 2,
            ]
            #expect(second.body["revoked"] == effect)
            try await revoker(http).revokeDue()
            #expect(try revoked().count == 2)
            // The decisions stay, so that each notification counts once.
            #expect(try await http.fixture.decisionLog() == ["0 push wanted", "0 push wanted"])
        }
    }

    @Test func `given a campaign, then senders skip its pushes and the registry cancels it`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            let key = try await key(http)
            try await publish(http, ["a", "b"])
            let (campaign, segment, old) = (UUID(), UUID(), UUID())
            for (id, reason, age) in [(campaign, "audience", 0), (segment, "segment", 0), (old, "audience", 8)] {
                try await http.pool.execute(
                    """
                    INSERT INTO rules.decision (notification, event, rule, user_id, decided_at, answer, reason)
                    SELECT \(id), key, \(reason), '(everyone)', clock_timestamp() - \(age) * interval '1 day', 'push', \(reason)
                    FROM rules.event WHERE id = 'a'
                    """)
            }
            let answer = try await http.send(.post, Self.path, ["app": "test", "event": "a"], user: key)
            #expect(answer.body["campaigns"]?.array?.count == 3)
            // One user's revocation leaves campaigns alone.
            _ = try await http.send(.post, Self.path, ["app": "test", "event": "b", "user": "1"], user: key)
            try await revoker(http).revokeDue()
            // The bus of tests has no queue for each app.
            let commands = try bus.messages(in: WorkQueue.registryDevices.name).map {
                try DeviceCommand.decode(wireBody: $0.body)
            }
            #expect(Set(commands.map(\.command)) == [.cancel(campaign: campaign), .cancel(campaign: segment)])
            let all = try await notifications(http, "a").subtracting([old]).union(notifications(http, "b", user: "1"))
            #expect(try Set(revoked()) == all)
            let state = try await http.send(.post, Self.path, ["app": "test", "event": "a"], user: key)
            #expect(state.body["revoked"]?["pushes"] == 2)
        }
    }

    @Test func `given one user and kept inbox items, then other users and all inboxes are unchanged`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            let key = try await key(http)
            try await publish(http, ["a"])
            let body: JSONValue = ["app": "test", "event": "a", "user": "2", "inbox": "keep"]
            #expect(try await http.send(.post, Self.path, body, user: key).status == 202)
            try await revoker(http).revokeDue()
            #expect(try await Set(revoked()) == notifications(http, "a", user: "2"))
            #expect(try await http.fixture.inbox("1") == 1)
            #expect(try await http.fixture.inbox("2") == 1)
            // By id; an inbox item of another user's notification stays.
            let id = try #require(try await notifications(http, "a", user: "1").first).uuidString.lowercased()
            let other: JSONValue = ["app": "test", "notification": .string(id), "user": "2"]
            #expect(try await http.send(.post, Self.path, other, user: key).status == 404)
            let own: JSONValue = ["app": "test", "notification": .string(id)]
            #expect(try await http.send(.post, Self.path, own, user: key).status == 202)
            try await revoker(http).revokeDue()
            #expect(try await http.fixture.inbox("1") == 0)
            #expect(try await http.fixture.inbox("2") == 1)
            #expect(try await Set(revoked()) == notifications(http, "a"))
        }
    }

    @Test func `given a held notification, then it is dropped with a reason and never released`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            let key = try await key(http)
            try await http.fixture.setPreferences(PersonalSettings(quietHours: DecisionStoreTests.night))
            try await publish(http, ["a"], users: "[1]")
            #expect(try await http.fixture.held() == 1)
            let body: JSONValue = ["app": "test", "event": "a"]
            #expect(try await http.send(.post, Self.path, body, user: key).status == 202)
            try await revoker(http).revokeDue()
            #expect(try await http.fixture.held() == 0)
            #expect(try await http.fixture.inbox() == 0)
            #expect(Set(try await http.fixture.decisionLog()) == ["0 hold quiet-hours", "1 drop revoked"])
            http.clock.advance(.seconds(86_400))
            #expect(try await http.fixture.release() == [])
            #expect(try revoked().isEmpty)
            let explained = try await http.send(
                .get, "/v1/operator/events/a?app=test", user: http.key(2, for: [.readEvents]))
            let event = explained.body["events"]?.array?.first
            #expect(event?["revocations"]?.array?.map { $0["revoked"]?["held"] } == [1])
            #expect(explained.body["reasons"]?["revoked"] != nil)
        }
    }

    @Test func `an unknown event, one of another app and a wrong key are refused alike`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            let key = try await key(http)
            try await publish(http, ["a"])
            try await http.pool.execute("UPDATE rules.event SET app = 'other'")
            let notification = try #require(try await notifications(http, "a").first).uuidString.lowercased()
            for name in ["a", "never"] {
                let answer = try await http.send(.post, Self.path, ["app": "test", "event": .string(name)], user: key)
                #expect(answer.status == 404)
                #expect(answer.body["detail"]?.string?.contains("“ahead”") == true)
            }
            for id in [notification, UUID().uuidString] {
                let body: JSONValue = ["app": "test", "notification": .string(id)]
                #expect(try await http.send(.post, Self.path, body, user: key).status == 404)
            }
            let elsewhere: JSONValue = ["app": "other", "event": "a"]
            #expect(try await http.send(.post, Self.path, elsewhere, user: key).status == 403)
            let reading = try await http.key(2, for: [.readEvents])
            #expect(try await http.send(.post, Self.path, elsewhere, user: reading).status == 403)
            #expect(try await http.send(.post, Self.path, ["app": "test"], user: key).status == 400)
            #expect(try await RulesDatabase.count("rules.revocation", http.pool) == 0)
        }
    }

    @Test func `given a revocation ahead, then the event is dropped when it arrives, and nothing is kept`() async throws
    {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            let key = try await key(http)
            let body: JSONValue = ["app": "test", "event": "a", "ahead": true]
            #expect(try await http.send(.post, Self.path, body, user: key).status == 202)
            try await revoker(http).revokeDue()
            #expect(try await http.fixture.handleEvent("a", users: "[1,2]") == [[]])
            #expect(try await http.fixture.handleEvent("b") == [["1"]])
            #expect(try await http.fixture.decisionLog("2") == ["0 drop revoked"])
            #expect(try await http.fixture.inbox("2") == 0)
            // A redelivery of the event, and a batch with it.
            #expect(try await http.fixture.handleEvent("a", "c", users: "[1,2]") == [[], ["1", "2"]])
        }
    }

    @Test func `given a decision in progress, then the revocation waits for it and finds its push`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            let key = try await key(http)
            let body: JSONValue = ["app": "test", "event": "a", "ahead": true]
            let revoker = revoker(http)
            let carrying = try await http.pool.transaction { transaction in
                // Stands for a decision that began before the request: it has read no revocation.
                try await transaction.execute(AdvisoryLock.decisions.shared)
                #expect(try await http.send(.post, Self.path, body, user: key).status == 202)
                let carrying = Task { try await revoker.revokeDue() }
                try await eventually("the worker waits") {
                    let waiting: Int = try await http.pool.query(
                        """
                        SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database
                        WHERE NOT granted AND datname = current_database()
                        """
                    ).single()
                    return waiting == 1
                }
                try await transaction.execute(
                    """
                    INSERT INTO rules.event VALUES (gen_random_uuid(), 'test', '/up', 'a', 't', gen_random_uuid(), now())
                    """)
                try await transaction.execute(
                    """
                    INSERT INTO rules.decision (notification, event, rule, user_id, decided_at)
                    SELECT gen_random_uuid(), key, 'only', '1', clock_timestamp() FROM rules.event
                    """)
                return carrying
            }
            try await carrying.value
            #expect(try await Set(revoked()) == notifications(http, "a"))
            #expect(try revoked().count == 1)
        }
    }

    @Test func `given a broker that does not confirm, then inbox items stay until a later attempt`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            let key = try await key(http)
            try await publish(http, ["a"])
            #expect(try await http.send(.post, Self.path, ["app": "test", "event": "a"], user: key).status == 202)
            // Without the stream's binding the broker returns the message.
            var topology = Topology(apps: [RulesHTTP.app])
            topology.bindings.removeAll { $0.queue == StreamName.senderRevocations.rawValue }
            try await revoker(http, on: InMemoryBus(topology: topology)).revokeDue()
            #expect(try await http.fixture.inbox() == 1)
            #expect(try await RulesDatabase.count("rules.revocation WHERE ended_at IS NULL", http.pool) == 1)
            try await http.pool.execute("UPDATE rules.revocation SET due_at = '-infinity'")
            try await revoker(http).revokeDue()
            #expect(try await http.fixture.inbox() == 0)
            #expect(try await Set(revoked()) == notifications(http, "a"))
        }
    }

    @Test func `given a process that dies between two steps, then another continues after the first`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            let key = try await key(http)
            try await publish(http, ["a"], users: "[1,2,3,4,5]")
            #expect(try await http.send(.post, Self.path, ["app": "test", "event": "a"], user: key).status == 202)
            let store = RevocationStore(pool: http.pool, step: 2, logger: .silent)
            let work = try #require(try await store.take().first)
            try await store.begin(work, now: http.clock.now)
            let step = try await store.advance(work, now: http.clock.now)
            #expect(step.notifications.count == 2 && step.pushes.count == 2 && !step.isLast)
            try await store.complete(step, of: work, now: http.clock.now)
            // The row is leased, so no other process takes it.
            try await revoker(http, step: 2).revokeDue()
            #expect(try revoked().isEmpty)
            #expect(try await RulesDatabase.count("rules.inbox", http.pool) == 3)
            try await http.pool.execute("UPDATE rules.revocation SET due_at = '-infinity'")
            try await revoker(http, step: 2).revokeDue()
            let rest = try await notifications(http, "a").subtracting(step.pushes)
            #expect(try Set(revoked()) == rest)
            #expect(bus.messages(in: StreamName.senderRevocations.rawValue).count == 2)
            let state = try await http.send(.post, Self.path, ["app": "test", "event": "a"], user: key)
            #expect(state.body["revoked"]?["pushes"] == 5 && state.body["revoked"]?["inbox_items"] == 5)
            #expect(try await RulesDatabase.count("rules.inbox", http.pool) == 0)
        }
    }

    @Test func `a preview counts the same, and stores nothing`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            try await http.fixture.setPreferences(PersonalSettings(quietHours: DecisionStoreTests.night))
            try await publish(http, ["a"])
            let log = RevocationLog(http.pool)
            let request = RevocationRequest(app: RulesHTTP.app, target: .event("a"))
            let expected = Revocation.Effect(held: 1, pushes: 1, inboxItems: 2)
            #expect(try await log.preview(request) == expected)
            #expect(try await log.preview(RevocationRequest(app: RulesHTTP.app, target: .event("b"))) == nil)
            #expect(try await RulesDatabase.count("rules.revocation", http.pool) == 0)
            guard case .recorded(let revocation, true) = try await log.record(request, by: .commandLine) else {
                Issue.record("the request is not stored")
                return
            }
            #expect(revocation.requestedBy.hasPrefix("pushctl as "))
            try await revoker(http).revokeDue()
            guard case .recorded(let ended, false) = try await log.record(request, by: .commandLine) else {
                Issue.record("the request is stored twice")
                return
            }
            #expect(ended.effect == expected)
        }
    }

    @Test func `given a push with an outcome, then it is revoked for an hour only, and none after a week`() async throws
    {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            let key = try await key(http)
            for (event, age, hasOutcome) in [
                ("young", 60, true), ("done", 7200, true), ("waits", 7200, false), ("ancient", 8 * 86_400, false),
            ] {
                _ = try await http.fixture.handleEvent(event)
                let id = try #require(try await notifications(http, event).first)
                try await http.pool.execute(
                    """
                    UPDATE rules.decision SET decided_at = clock_timestamp() - make_interval(secs => \(age))
                    WHERE notification = \(id)
                    """)
                if hasOutcome {
                    try await http.pool.execute(
                        "INSERT INTO rules.outcome VALUES (\(id), NULL, 'accepted', 'apns', NULL, now())")
                }
                let body: JSONValue = ["app": "test", "event": .string(event)]
                #expect(try await http.send(.post, Self.path, body, user: key).status == 202)
            }
            try await revoker(http).revokeDue()
            let expected = try await notifications(http, "young").union(notifications(http, "waits"))
            #expect(try Set(revoked()) == expected)
            #expect(try await http.fixture.inbox() == 0)
        }
    }
}

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

/// `revoke` of a rule file, and revocations of digests and fan-outs, on a real database.
@Suite(.timeLimit(.minutes(8))) struct RevokedItemTests {
    typealias GatheringFixture = GatheringTests.GatheringFixture
    static let revoke = #"revoke: [{ event: thing.settled, item: "{{name}}" }]"#

    /// The rules of ``GatheringTests`` with `revoke` in place of `done`.
    static func rules(_ policy: String, revoke: String = revoke) -> String {
        let text = GatheringTests.rules(policy)
        let done = #"done:\#n  - { event: thing.settled, item: "{{name}}" }"#
        precondition(text.contains(done))
        return text.replacing(done, with: revoke)
            .replacing(
                "thing.settled: { examples: [{ name: Pat", with: "thing.settled: { examples: [{ who: 1, name: Pat")
    }

    private func with(
        _ rules: String, _ body: (GatheringFixture, NotificationRevoker) async throws -> Void
    ) async throws {
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            let fixture = try GatheringFixture(pool, rules)
            let revoker = NotificationRevoker(
                service: "rules", store: RevocationStore(pool: pool, logger: .silent),
                currentRules: fixture.currentRules, bus: fixture.bus, now: { fixture.clock.now }, logger: .silent)
            try await body(fixture, revoker)
        }
    }

    private func settle(_ fixture: GatheringFixture, _ name: String, who: String = "1", at moment: String? = nil)
        async throws
    {
        try await fixture.handleEvent("thing.settled", #"{"name":"\#(name)","who":"\#(who)"}"#, at: moment)
    }

    private func revoked(_ bus: InMemoryBus) throws -> Set<UUID> {
        Set(
            try bus.messages(in: StreamName.senderRevocations.rawValue).flatMap {
                try NotificationRevocation.decode(wireBody: $0.body).notifications
            })
    }

    /// The notifications of users with the decision `push`, dated by the database's clock.
    private func pushed(_ fixture: GatheringFixture, users: [String]) async throws -> Set<UUID> {
        try await fixture.pool.execute("UPDATE rules.decision SET decided_at = clock_timestamp()")
        return Set(
            try await fixture.pool.query(
                "SELECT notification FROM rules.decision WHERE answer = 'push' AND user_id = ANY(\(users))"
            ).map { try $0.decode(UUID.self, at: 0) })
    }

    @Test func `given an event under revoke, then earlier pushes and inbox items of its item go, and later ones stay`()
        async throws
    {
        try await with(Self.rules(#"{ item: "{{name}}" }"#)) { fixture, revoker in
            #expect(try await fixture.thing("Pat", users: "[1,2]", at: "2026-01-10T11:00:00Z") == ["1,2: Pat"])
            #expect(try await fixture.thing("Sam", at: "2026-01-10T11:00:00Z") == ["1: Sam"])
            let pats = try await pushed(fixture, users: ["1", "2"])
            try await settle(fixture, "Pat", at: "2026-01-10T11:30:00Z")
            try await revoker.revokeDue()
            let gone = try revoked(fixture.bus)
            #expect(gone.count == 2 && gone.isSubset(of: pats))
            #expect(try await RulesDatabase.count("rules.inbox", fixture.pool) == 1)
            // An earlier event that arrives late is dropped, a later one is pushed.
            #expect(try await fixture.thing("Pat", at: "2026-01-10T11:15:00Z") == [])
            #expect(try await fixture.thing("Pat", at: "2026-01-10T11:45:00Z") == ["1: Pat"])
            #expect(try await fixture.count("rules.decision WHERE reason = 'revoked'") == 1)
            let source: String = try await fixture.pool.query(
                "SELECT source || ' ' || requested_by FROM rules.revocation WHERE ended_at IS NOT NULL"
            ).single()
            #expect(source == "rule revoke.0")
        }
    }

    @Test func `given a user under revoke, then only that user's notifications go, pending ones at once`() async throws
    {
        let revoke = #"revoke: [{ event: thing.settled, item: "{{name}}", user: who, inbox: keep }]"#
        try await with(Self.rules(#"{ item: "{{name}}", schedule: { at: at } }"#, revoke: revoke)) { fixture, revoker in
            try await fixture.thing("Pat", users: "[1,2]", at: "2026-01-10T11:00:00Z")
            try await settle(fixture, "Pat", who: "2", at: "2026-01-10T11:30:00Z")
            // In the transaction of the event, before the worker.
            #expect(try await RulesDatabase.count("rules.held", fixture.pool) == 1)
            #expect(try await fixture.decisionLog("2").contains { $0.contains("drop revoked") })
            try await revoker.revokeDue()
            fixture.clock.set(moment("2026-01-20T12:00:01Z"))
            #expect(try await fixture.runWorkers() == ["1: Pat"])
        }
    }

    @Test func `given a rule file without revoke, then no item is stored`() async throws {
        try await with(GatheringTests.rules(#"{ item: "{{name}}" }"#)) { fixture, _ in
            try await fixture.thing("Pat")
            #expect(try await RulesDatabase.count("rules.event_item", fixture.pool) == 0)
        }
    }

    @Test func `given entries of a digest, then a revoked one leaves it, and an empty digest is not sent`() async throws
    {
        let policy = #"{ digest: { after: 15m, keep: { name: "{{name}}" }, say: { body: "{{count}}" } } }"#
        let rules = GatheringTests.rules(policy, say: "{}")
        for (events, expected) in [(["a"], ["1: 1"]), (["a", "b"], [])] as [([String], [String])] {
            try await with(rules) { fixture, revoker in
                try await fixture.thing("Pat", id: "a")
                try await fixture.thing("Sam", id: "b")
                for event in events {
                    let request = RevocationRequest(app: AppID(rawValue: "test")!, target: .event(event))
                    _ = try await RevocationLog(fixture.pool).record(request, by: .commandLine)
                }
                try await revoker.revokeDue()
                fixture.clock.advance(.seconds(1000))
                #expect(try await fixture.runWorkers() == expected)
                let dropped = try await RulesDatabase.count(
                    "rules.decision WHERE answer = 'drop' AND reason = 'revoked'", fixture.pool)
                #expect(dropped == events.count)
            }
        }
    }

    @Test func `given a rendered digest, then its latest event does not revoke it, and its own id does`() async throws {
        let policy = #"{ digest: { after: 15m, keep: { name: "{{name}}" }, say: { body: "{{count}}" } } }"#
        try await with(GatheringTests.rules(policy, say: "{}")) { fixture, revoker in
            try await fixture.thing("Pat", id: "a")
            try await fixture.thing("Sam", id: "b")
            fixture.clock.advance(.seconds(1000))
            #expect(try await fixture.runWorkers() == ["1: 2"])
            let app = AppID(rawValue: "test")!
            let log = RevocationLog(fixture.pool)
            _ = try await log.record(RevocationRequest(app: app, target: .event("b")), by: .commandLine)
            try await revoker.revokeDue()
            #expect(try revoked(fixture.bus).isEmpty)
            let digest = try #require(try await pushed(fixture, users: ["1"]).first)
            _ = try await log.record(RevocationRequest(app: app, target: .notification(digest)), by: .commandLine)
            try await revoker.revokeDue()
            #expect(try revoked(fixture.bus) == [digest])
            #expect(try await RulesDatabase.count("rules.inbox", fixture.pool) == 0)
        }
    }

    @Test func `given a campaign's event, then its id is named, and the campaign's own id is refused`() async throws {
        let rules = GatheringTests.rules("{ inbox: false }", to: "{ audience: everyone }")
            .replacing("policy: { inbox: false }", with: "")
        try await with(rules) { fixture, revoker in
            try await fixture.thing("Pat", id: "a")
            let app = AppID(rawValue: "test")!
            let log = RevocationLog(fixture.pool)
            let campaign: UUID = try await fixture.pool.query("SELECT notification FROM rules.decision").single()
            let request = RevocationRequest(app: app, target: .event("a"))
            guard case .recorded(let revocation, true) = try await log.record(request, by: .commandLine) else {
                Issue.record("the event is unknown")
                return
            }
            #expect(revocation.campaigns == [campaign])
            let own = RevocationRequest(app: app, target: .notification(campaign))
            #expect(try await log.record(own, by: .commandLine) == .isCampaign)
            try await revoker.revokeDue()
            #expect(try revoked(fixture.bus).isEmpty)
        }
    }
}

/// Revocations of running fan-outs.
@Suite(.timeLimit(.minutes(5))) struct RevokedFanOutTests {
    typealias FanOutFixture = LargeAudienceTests.FanOutFixture

    private func revoke(_ fixture: FanOutFixture, _ user: String? = nil) async throws {
        let request = RevocationRequest(
            app: AppID(rawValue: "test")!, target: .event("a"), user: user.flatMap { UserID(rawValue: $0) })
        _ = try await RevocationLog(fixture.pool).record(request, by: .commandLine)
        try await fixture.pool.execute("UPDATE rules.decision SET decided_at = clock_timestamp()")
        try await NotificationRevoker(
            service: "rules", store: RevocationStore(pool: fixture.pool, logger: .silent),
            currentRules: CurrentRules(RuleSets([])), bus: fixture.bus, now: { fixture.clock.now }, logger: .silent
        ).revokeDue()
    }

    private func revoked(_ fixture: FanOutFixture) throws -> Set<UUID> {
        Set(
            try fixture.bus.messages(in: StreamName.senderRevocations.rawValue).flatMap {
                try NotificationRevocation.decode(wireBody: $0.body).notifications
            })
    }

    @Test func `given a running fan-out, then it ends with one decision, and published steps are revoked`() async throws
    {
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            let fixture = try FanOutFixture(pool)
            try await fixture.addMembers(1300)
            try await fixture.handleEvent("a")
            #expect(try await fixture.teller.processNext())
            try await revoke(fixture)
            try await fixture.runSteps()
            #expect(try fixture.ids().count == LargeAudience.step)
            #expect(try revoked(fixture) == Set(fixture.ids()))
            let last: String = try await pool.query(
                "SELECT user_id || ' ' || answer || ' ' || reason FROM rules.decision WHERE answer = 'drop'"
            ).single()
            #expect(last == "(everybody who was left) drop revoked")
            #expect(try await RulesDatabase.count("rules.crowd WHERE due_at IS NULL", pool) == 1)
            #expect(try await RulesDatabase.count("rules.revocation WHERE fan_outs = 1", pool) == 1)
            #expect(try await RulesDatabase.count("rules.inbox", pool) == 0)
        }
    }

    @Test func `given a decided step without a confirm, then it is published before the fan-out ends`() async throws {
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            let fixture = try FanOutFixture(pool)
            try await fixture.addMembers(1300)
            try await fixture.handleEvent("a")
            // Decides a step; the process dies before it publishes.
            guard
                case .decided = try await fixture.store.advance(
                    by: fixture.currentRules.ruleSets, now: fixture.clock.now)
            else {
                Issue.record("no step is decided")
                return
            }
            try await revoke(fixture)
            fixture.clock.advance(FanOutStore.lease)
            try await fixture.runSteps()
            #expect(try fixture.ids().count == LargeAudience.step)
            #expect(try revoked(fixture) == Set(fixture.ids()))
        }
    }

    @Test func `given a revocation for one user, then the fan-out leaves that user out`() async throws {
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            let fixture = try FanOutFixture(pool)
            try await fixture.addMembers(1300)
            try await fixture.handleEvent("a")
            #expect(try await fixture.teller.processNext())
            try await revoke(fixture, "u-999")
            try await fixture.runSteps()
            #expect(try fixture.ids().count == 1299)
            let dropped: String = try await pool.query(
                "SELECT user_id || ' ' || reason FROM rules.decision WHERE answer = 'drop'"
            ).single()
            #expect(dropped == "u-999 revoked")
        }
    }
}

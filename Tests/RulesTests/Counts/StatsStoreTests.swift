import DecisionLog
import Foundation
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// The statistics of each rule, counted from the service's own tables.
@Suite(.timeLimit(.minutes(3))) struct StatsStoreTests {
    private static let app = AppID(rawValue: "test")!

    /// `sent unsent accepted failed opened dismissed` of each rule in the day before `now`.
    private static func counts(_ fixture: DecisionStoreTests.DecisionFixture, app: AppID? = app) async throws
        -> [String]
    {
        let now = fixture.clock.now
        let window = CountWindow(from: now - .seconds(86_400), until: now + .seconds(1))!
        return try await CountStore(fixture.pool).counts(of: app, in: window).rows.map { row in
            let figures = row.figures
            return
                "\(row.rule) \(figures.sent) \(figures.unsent) \(figures.accepted) \(figures.failed) \(figures.opened) "
                + "\(figures.dismissed)"
        }
    }

    private static func answer(
        _ fixture: DecisionStoreTests.DecisionFixture, _ user: String, _ answers: [(UUID?, Outcome.Answer)],
        origin: Outcomes.Origin = .apns
    ) async throws {
        let notification: UUID = try await fixture.pool.query(
            "SELECT notification FROM rules.decision WHERE user_id = \(user) ORDER BY decided_at DESC, step DESC LIMIT 1"
        ).single()
        let outcomes = answers.map { device, answer in
            Outcome(
                notification: notification, device: device, answer: answer, at: fixture.clock.now, registeredAt: nil)
        }
        try await OutcomeStore(pool: fixture.pool).keep([
            Outcomes(
                trace: Trace(id: UUID(), correlation: "e", causation: "e"), app: app, origin: origin, environment: nil,
                lane: .interactive, outcomes: outcomes)
        ])
    }

    private static func receive(
        _ fixture: DecisionStoreTests.DecisionFixture, _ user: String, _ what: [ReceiptAction]
    ) async throws {
        let notification: UUID = try await fixture.pool.query(
            "SELECT notification FROM rules.decision WHERE user_id = \(user) ORDER BY decided_at DESC, step DESC LIMIT 1"
        ).single()
        try await ReceiptStore(pool: fixture.pool).keep(
            what.map { ReceiptsBody.Receipt(notification: notification, what: $0) },
            of: PersonKey(app: app, user: UserID(rawValue: user)!), now: fixture.clock.now)
    }

    @Test func `each notification counts once, by its last decision and its outcome`() async throws {
        try await RulesDatabase.withPool { pool in
            let fixture = try DecisionStoreTests.DecisionFixture(pool)
            try await fixture.setPreferences(PersonalSettings(isOn: false), user: "2")
            _ = try await fixture.handleEvent("e1", users: "[1,2,3,4,5]")
            let (one, two) = (UUID(), UUID())
            // Rejected for one device, accepted for another.
            try await Self.answer(
                fixture, "1", [(one, .accepted(id: nil)), (two, .rejected(reason: "BadTopic", suspectToken: false))])
            try await Self.answer(fixture, "3", [(one, .unregistered(since: nil, reason: "Unregistered"))])
            try await Self.answer(fixture, "4", [(nil, .skipped(reason: "no-device"))], origin: .registry)
            try await Self.receive(fixture, "1", [.opened, .dismissed])
            // In the inbox only.
            try await Self.receive(fixture, "2", [.opened])
            let store = StatsStore(pool: pool)
            #expect(try await store.count(now: fixture.clock.now).count == 169)
            #expect(try await Self.counts(fixture) == ["only 4 1 1 1 2 1"])
            #expect(try await Self.counts(fixture, app: nil) == ["only 4 1 1 1 2 1"])
            #expect(try await Self.counts(fixture, app: AppID(rawValue: "other")) == [])
        }
    }

    @Test func `a held notification counts when it is released`() async throws {
        try await RulesDatabase.withPool { pool in
            let fixture = try DecisionStoreTests.DecisionFixture(pool)
            let store = StatsStore(pool: pool)
            let settings = PersonalSettings(quietHours: DecisionStoreTests.night)
            try await fixture.setPreferences(settings)
            _ = try await fixture.handleEvent("e1")
            try await store.count(now: fixture.clock.now)
            #expect(try await Self.counts(fixture) == [])
            fixture.clock.advance(.seconds(4 * 3600))
            #expect(try await fixture.release() == ["1"])
            try await store.count(now: fixture.clock.now)
            #expect(try await Self.counts(fixture) == ["only 1 0 0 0 0 0"])
        }
    }

    @Test func `an hour is recounted while outcomes arrive, and its counts outlive the history`() async throws {
        try await RulesDatabase.withPool { pool in
            let fixture = try DecisionStoreTests.DecisionFixture(pool)
            let store = StatsStore(pool: pool)
            _ = try await fixture.handleEvent("e1")
            try await store.count(now: fixture.clock.now)
            #expect(try await store.count(now: fixture.clock.now).isEmpty)
            try await Self.answer(fixture, "1", [(UUID(), .accepted(id: nil))])
            #expect(try await Self.counts(fixture) == ["only 1 0 0 0 0 0"])
            fixture.clock.advance(StatsRollupPlan.pace)
            #expect(try await store.count(now: fixture.clock.now).count == 2)
            #expect(try await Self.counts(fixture) == ["only 1 0 1 0 0 0"])
            for table: SQL in ["decision", "event", "outcome"] { try await pool.execute("DELETE FROM rules.\(table)") }
            fixture.clock.advance(StatsRollupPlan.pace)
            #expect(try await !store.count(now: fixture.clock.now).isEmpty)
            #expect(try await Self.counts(fixture) == ["only 1 0 1 0 0 0"])
            fixture.clock.advance(StatsRollupPlan.retention + .seconds(7200))
            try await store.count(now: fixture.clock.now)
            #expect(try await RulesDatabase.count("rules.tally", pool) == 0)
        }
    }

    @Test func `each version of the rules has its own counts, and several processes count once`() async throws {
        try await RulesDatabase.withPool { pool in
            let fixture = try DecisionStoreTests.DecisionFixture(pool)
            _ = try await fixture.handleEvent("e1", users: "[1,2]")
            let other = try DecisionStoreTests.DecisionFixture(pool, rules: DecisionStoreTests.rules + "\n")
            _ = try await other.handleEvent("e2", users: "[3]")
            let now = fixture.clock.now
            let counted = try await withThrowingTaskGroup(of: [Timestamp].self) { group in
                for _ in 0..<4 { group.addTask { try await StatsStore(pool: pool).count(now: now) } }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            #expect(counted.count == Set(counted).count)
            // A process that finds another one counting skips the hour.
            try await StatsStore(pool: pool).count(now: now)
            #expect(try await Self.counts(fixture) == ["only 2 0 0 0 0 0", "only 1 0 0 0 0 0"])
        }
    }
}

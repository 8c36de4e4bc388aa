import DecisionLog
import Foundation
import Postgres
import PushProtocol
import TestSupport
import Testing

@testable import Rules

/// What came of each rule, counted from what the service itself wrote.
@Suite(.timeLimit(.minutes(3))) struct TallyStoreTests {
    private static let app = AppID(rawValue: "test")!

    /// `sent unsent accepted failed opened dismissed` of each rule in the day before `now`.
    private static func counts(_ house: DecisionStoreTests.House, app: AppID? = app) async throws -> [String] {
        let now = house.clock.now
        let window = CountWindow(from: now - .seconds(86_400), until: now + .seconds(1))!
        return try await CountStore(house.pool).counts(of: app, in: window).rows.map { row in
            let figures = row.figures
            return
                "\(row.rule) \(figures.sent) \(figures.unsent) \(figures.accepted) \(figures.failed) \(figures.opened) "
                + "\(figures.dismissed)"
        }
    }

    private static func answer(
        _ house: DecisionStoreTests.House, _ user: String, _ answers: [(UUID?, Outcome.Answer)],
        origin: Outcomes.Origin = .apns
    ) async throws {
        let notification: UUID = try await house.pool.query(
            "SELECT notification FROM rules.decision WHERE user_id = \(user) ORDER BY decided_at DESC, step DESC LIMIT 1"
        ).single()
        let outcomes = answers.map { device, answer in
            Outcome(notification: notification, device: device, answer: answer, at: house.clock.now, registeredAt: nil)
        }
        try await OutcomeStore(pool: house.pool).keep([
            Outcomes(
                trace: Trace(id: UUID(), correlation: "e", causation: "e"), app: app, origin: origin, environment: nil,
                lane: .interactive, outcomes: outcomes)
        ])
    }

    private static func receive(
        _ house: DecisionStoreTests.House, _ user: String, _ what: [ReceiptsBody.Receipt.What]
    ) async throws {
        let notification: UUID = try await house.pool.query(
            "SELECT notification FROM rules.decision WHERE user_id = \(user) ORDER BY decided_at DESC, step DESC LIMIT 1"
        ).single()
        try await ReceiptStore(pool: house.pool).keep(
            what.map { ReceiptsBody.Receipt(notification: notification, what: $0) },
            of: PersonKey(app: app, user: UserID(rawValue: user)!), now: house.clock.now)
    }

    @Test func `each notification counts once, by what was decided last and what came of it`() async throws {
        try await RulesDatabase.withPool { pool in
            let house = try DecisionStoreTests.House(pool)
            try await house.choose(PersonalSettings(isOn: false), user: "2")
            _ = try await house.happen("e1", users: "[1,2,3,4,5]")
            let (one, two) = (UUID(), UUID())
            // On one device it was refused, and on another taken.
            try await Self.answer(
                house, "1", [(one, .accepted(id: nil)), (two, .rejected(reason: "BadTopic", suspectToken: false))])
            try await Self.answer(house, "3", [(one, .unregistered(since: nil, reason: "Unregistered"))])
            try await Self.answer(house, "4", [(nil, .skipped(reason: "no-device"))], origin: .registry)
            try await Self.receive(house, "1", [.opened, .dismissed])
            // In the inbox, and not pushed.
            try await Self.receive(house, "2", [.opened])
            let store = TallyStore(pool: pool)
            #expect(try await store.count(now: house.clock.now).count == 169)
            #expect(try await Self.counts(house) == ["only 4 1 1 1 2 1"])
            #expect(try await Self.counts(house, app: nil) == ["only 4 1 1 1 2 1"])
            #expect(try await Self.counts(house, app: AppID(rawValue: "other")) == [])
        }
    }

    @Test func `what is held counts when it is let go, and not before`() async throws {
        try await RulesDatabase.withPool { pool in
            let house = try DecisionStoreTests.House(pool)
            let store = TallyStore(pool: pool)
            let settings = PersonalSettings(quietHours: DecisionStoreTests.night)
            try await house.choose(settings)
            _ = try await house.happen("e1")
            try await store.count(now: house.clock.now)
            #expect(try await Self.counts(house) == [])
            house.clock.advance(.seconds(4 * 3600))
            #expect(try await house.release() == ["1"])
            try await store.count(now: house.clock.now)
            #expect(try await Self.counts(house) == ["only 1 0 0 0 0 0"])
        }
    }

    @Test func `an hour is counted again while answers come, and what was counted outlives the log`() async throws {
        try await RulesDatabase.withPool { pool in
            let house = try DecisionStoreTests.House(pool)
            let store = TallyStore(pool: pool)
            _ = try await house.happen("e1")
            try await store.count(now: house.clock.now)
            #expect(try await store.count(now: house.clock.now).isEmpty)
            try await Self.answer(house, "1", [(UUID(), .accepted(id: nil))])
            #expect(try await Self.counts(house) == ["only 1 0 0 0 0 0"])
            house.clock.advance(TallyPlan.pace)
            #expect(try await store.count(now: house.clock.now).count == 2)
            #expect(try await Self.counts(house) == ["only 1 0 1 0 0 0"])
            for table: SQL in ["decision", "event", "outcome"] { try await pool.execute("DELETE FROM rules.\(table)") }
            house.clock.advance(TallyPlan.pace)
            #expect(try await !store.count(now: house.clock.now).isEmpty)
            #expect(try await Self.counts(house) == ["only 1 0 1 0 0 0"])
            house.clock.advance(TallyPlan.retention + .seconds(7200))
            try await store.count(now: house.clock.now)
            #expect(try await RulesDatabase.count("rules.tally", pool) == 0)
        }
    }

    @Test func `another version of the rules counts by itself, and several processes count once`() async throws {
        try await RulesDatabase.withPool { pool in
            let house = try DecisionStoreTests.House(pool)
            _ = try await house.happen("e1", users: "[1,2]")
            let other = try DecisionStoreTests.House(pool, rules: DecisionStoreTests.rules + "\n")
            _ = try await other.happen("e2", users: "[3]")
            let now = house.clock.now
            let counted = try await withThrowingTaskGroup(of: [Timestamp].self) { group in
                for _ in 0..<4 { group.addTask { try await TallyStore(pool: pool).count(now: now) } }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            #expect(counted.count == Set(counted).count)
            // Whoever found another at it left it to that one.
            try await TallyStore(pool: pool).count(now: now)
            #expect(try await Self.counts(house) == ["only 2 0 0 0 0 0", "only 1 0 0 0 0 0"])
        }
    }
}

import Foundation
import Messaging
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import Rules

/// Erasure of a user concurrent with work about that user.
@Suite(.timeLimit(.minutes(8))) struct ErasureRaceTests {
    static let one = PersonKey(app: AppID(rawValue: "test")!, user: user("1"))
    static let tables = [
        "decision", "inbox", "held", "digest", "digest_item", "person", "told", "member", "badge", "report", "presence",
    ]

    static func left(_ pool: PostgresPool) async throws -> [String: Int] {
        var counts: [String: Int] = [:]
        for table in tables {
            let count = try await pool.query(
                "SELECT count(*) FROM rules.\(identifier: table) WHERE user_id = '1'"
            ).single(Int.self)
            if count > 0 { counts[table] = count }
        }
        return counts
    }

    @Test func `earlier events leave no row, whenever decided, and later events start anew`()
        async throws
    {
        try await DecisionStoreTests().withFixture { (fixture: DecisionStoreTests.DecisionFixture) async throws in
            var notifiedCount = 0
            for round in 0..<20 {
                let erasedAt = fixture.clock.now
                notifiedCount += try await withThrowingTaskGroup(of: Int.self) { group in
                    for number in 0..<6 {
                        group.addTask {
                            try await fixture.handleEvent("r\(round)-\(number)", users: "[1,2]").joined()
                                .filter { $0 == "1" }.count
                        }
                    }
                    group.addTask {
                        try await ErasureStore(pool: fixture.pool).erase(Self.one, at: erasedAt)
                        return 0
                    }
                    return try await group.reduce(0, +)
                }
                #expect(try await Self.left(fixture.pool) == [:], "round \(round)")
                // A repeat, as after a crash: the user gets no notification, and no row is written.
                let again = try await fixture.handleEvent("r\(round)-0", users: "[1,2]").joined()
                #expect(!again.contains("1"))
                #expect(try await fixture.handleEvent("r\(round)-late", users: "[1]") == [[]])
                #expect(try await Self.left(fixture.pool) == [:])
                fixture.clock.advance(.seconds(3600))
                #expect(try await fixture.handleEvent("r\(round)-new", users: "[1]") == [["1"]])
                #expect(try await Self.left(fixture.pool) == ["decision": 1, "inbox": 1, "person": 1])
                fixture.clock.advance(.seconds(3600))
            }
            #expect(notifiedCount > 0, "the erasure was always first")
        }
    }

    @Test func `held and digested notifications released during the erasure leave no row`() async throws {
        let policy =
            #"{ type: news, caps: hourly, surplus: digest, report: true, digest: { after: 1h, say: { body: "{{count}}" } } }"#
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            let fixture = try GatheringTests.GatheringFixture(pool, GatheringTests.rules(policy))
            let night = QuietHours(days: Set(Weekday.allCases), start: clock("13:00"), end: clock("15:30"))
            let settings = String(
                decoding: try WireCoding.encode(PersonalSettings(quietHours: night)), as: UTF8.self)
            for round in 0..<12 {
                try await pool.execute(
                    "INSERT INTO rules.person (app, user_id, settings) VALUES ('test', '1', \(settings)::jsonb)")
                for number in 0..<5 { try await fixture.thing("r\(round)-\(number)", users: "[1,2]") }
                let erasedAt = fixture.clock.now
                fixture.clock.advance(.seconds(8 * 3600))
                #expect(try await Self.left(pool)["held"] == 5)
                // In turn: held notifications go into a digest, or digest items become a held summary.
                if round.isMultiple(of: 2) {
                    try await fixture.scheduledSendWorker.releaseDue()
                    fixture.clock.advance(.seconds(3600))
                    #expect(try await Self.left(pool)["digest_item"] == 3)
                }
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask { try await ErasureStore(pool: pool).erase(Self.one, at: erasedAt) }
                    for _ in 0..<2 {
                        group.addTask { try await fixture.digestWorker.closeDue() }
                        group.addTask { try await fixture.scheduledSendWorker.releaseDue() }
                    }
                    try await group.waitForAll()
                }
                #expect(try await Self.left(pool) == [:], "round \(round)")
                fixture.clock.set(GatheringTests.start + .seconds((round + 1) * 86_400))
            }
        }
    }

    @Test func `an erased user's outcomes are not stored, and other users' are`() async throws {
        try await DecisionStoreTests().withFixture { (fixture: DecisionStoreTests.DecisionFixture) async throws in
            let pool = fixture.pool
            let handler = EventHandler(
                currentRules: CurrentRules(fixture.ruleSets), store: DecisionStore(pool: pool),
                now: { fixture.clock.now })
            for round in 0..<15 {
                let inbound = delivered(
                    cloudEvent(id: "e-\(round)", data: #"{"users":[1,2],"name":"Pat","room":1}"#)
                ).at(fixture.clock.now)
                let verdict = try await handler.handle([
                    Delivery(inbound: inbound, message: try handler.decode(inbound))
                ])[0]
                let outcomes = try answers(to: verdict.outbound)
                let erasedAt = fixture.clock.now
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<3 { group.addTask { try await OutcomeStore(pool: pool).keep(outcomes) } }
                    group.addTask { try await ErasureStore(pool: pool).erase(Self.one, at: erasedAt) }
                    try await group.waitForAll()
                }
                try await OutcomeStore(pool: pool).keep(outcomes)
                #expect(try await RulesDatabase.count("rules.outcome", pool) == round + 1)
                #expect(try await Self.left(pool) == [:])
                fixture.clock.advance(.seconds(3600))
            }
        }
    }

    /// Whether a transaction waits for an advisory lock in this database.
    private static func waits(_ pool: PostgresPool) async throws -> Bool {
        try await pool.query(
            """
            SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
            """
        ).single()
    }

    @Test func `an erasure waits for a running outcome transaction, and later outcomes wait for it`() async throws {
        try await DecisionStoreTests().withFixture { (fixture: DecisionStoreTests.DecisionFixture) async throws in
            let pool = fixture.pool
            func notification(of user: String) async throws -> UUID {
                try await pool.query("SELECT notification FROM rules.decision WHERE user_id = \(user)").single()
            }
            #expect(try await fixture.handleEvent("e", users: "[1,2]") == [["1", "2"]])
            let outcomes = Outcomes(
                trace: Trace(id: UUID(), correlation: "e", causation: "p"), app: Self.one.app, origin: .apns,
                environment: .production, lane: .interactive,
                outcomes: try await [notification(of: "1"), notification(of: "2")].map {
                    Outcome(notification: $0, device: nil, answer: .expired, at: .now, registeredAt: nil)
                })
            let erasedAt = fixture.clock.now
            let erasing = try await pool.transaction { transaction in
                try await transaction.execute(AdvisoryLock.outcomes.shared)
                try await transaction.execute(
                    "INSERT INTO rules.outcome SELECT notification, NULL, 'accepted', 'apns', NULL, now() FROM rules.decision"
                )
                let erasing = Task { try await ErasureStore(pool: pool).erase(Self.one, at: erasedAt) }
                try await eventually("the erasure waits") { try await Self.waits(pool) }
                return erasing
            }
            #expect(try await erasing.value)
            #expect(try await RulesDatabase.count("rules.outcome", pool) == 1)

            let keeping = try await pool.transaction { transaction in
                try await transaction.execute(AdvisoryLock.outcomes.alone)
                let keeping = Task { try await OutcomeStore(pool: pool).keep([outcomes]) }
                try await eventually("the outcomes wait") { try await Self.waits(pool) }
                try await transaction.execute("DELETE FROM rules.decision")
                return keeping
            }
            try await keeping.value
            #expect(try await RulesDatabase.count("rules.outcome", pool) == 1)
        }
    }

    @Test func `events from before an erasure neither add nor notify the erased user`() async throws {
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            let fixture = try GatheringTests.GatheringFixture(
                pool, GatheringTests.rules("{ type: news }", to: #"{ group: "room/{{room}}" }"#))
            func members() async throws -> [String] {
                try await pool.query("SELECT user_id || ' ' || has_left FROM rules.member ORDER BY 1")
                    .map { try $0.decode(String.self, at: 0) }
            }
            try await fixture.handleEvent(
                "room.joined", #"{"room":1,"who":[1,2],"role":"clerk"}"#, at: "2026-01-10T11:00:00Z")
            try await ErasureStore(pool: pool).erase(Self.one, at: moment("2026-01-10T11:30:00Z"))
            #expect(try await members() == ["2 false"])
            // All of these events happened before the erasure.
            try await fixture.handleEvent(
                "room.joined", #"{"room":1,"who":[1,3],"role":"clerk"}"#, at: "2026-01-10T11:10:00Z")
            try await fixture.handleEvent("room.left", #"{"room":1,"who":[1]}"#, at: "2026-01-10T11:20:00Z")
            try await fixture.handleEvent(
                "room.listed", #"{"room":1,"them":[{"id":1,"role":"boss"},{"id":2,"role":"boss"}]}"#,
                at: "2026-01-10T11:30:00Z")
            #expect(try await members() == ["2 false", "3 true"])
            try await fixture.handleEvent(
                "room.joined", #"{"room":1,"who":[1],"role":"clerk"}"#, at: "2026-01-10T11:40:00Z")
            #expect(try await members() == ["1 false", "2 false", "3 true"])
            #expect(try await fixture.thing("early", at: "2026-01-10T11:25:00Z") == ["2: early"])
            #expect(try await fixture.thing("now", at: "2026-01-10T11:50:00Z") == ["1,2: now"])
        }
    }
}

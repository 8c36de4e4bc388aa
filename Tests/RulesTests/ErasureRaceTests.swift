import Foundation
import Messaging
import Postgres
import PushProtocol
import TestSupport
import Testing

@testable import Rules

/// Somebody is forgotten while things about them are on their way.
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

    @Test func `what happened before leaves nothing, whenever it is decided, and what happens later begins anew`()
        async throws
    {
        try await DecisionStoreTests().withHouse { (house: DecisionStoreTests.House) async throws in
            var told = 0
            for round in 0..<20 {
                let erasedAt = house.clock.now
                told += try await withThrowingTaskGroup(of: Int.self) { group in
                    for number in 0..<6 {
                        group.addTask {
                            try await house.happen("r\(round)-\(number)", users: "[1,2]").joined()
                                .filter { $0 == "1" }.count
                        }
                    }
                    group.addTask {
                        try await ErasureStore(pool: house.pool).erase(Self.one, at: erasedAt)
                        return 0
                    }
                    return try await group.reduce(0, +)
                }
                #expect(try await Self.left(house.pool) == [:], "round \(round)")
                // Comes again, as after a crash: she is not told, and nothing is written.
                let again = try await house.happen("r\(round)-0", users: "[1,2]").joined()
                #expect(!again.contains("1"))
                #expect(try await house.happen("r\(round)-late", users: "[1]") == [[]])
                #expect(try await Self.left(house.pool) == [:])
                house.clock.advance(.seconds(3600))
                #expect(try await house.happen("r\(round)-new", users: "[1]") == [["1"]])
                #expect(try await Self.left(house.pool) == ["decision": 1, "inbox": 1, "person": 1])
                house.clock.advance(.seconds(3600))
            }
            #expect(told > 0, "the erasure was always first")
        }
    }

    @Test func `what waits and what is gathered leaves nothing when it is let go at that moment`() async throws {
        let policy =
            #"{ type: news, caps: hourly, surplus: digest, report: true, digest: { after: 1h, say: { body: "{{count}}" } } }"#
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            let place = try GatheringTests.Place(pool, GatheringTests.rules(policy))
            let night = QuietHours(days: Set(Weekday.allCases), start: clock("13:00"), end: clock("15:30"))
            let settings = String(
                decoding: try WireCoding.encode(PersonalSettings(quietHours: night)), as: UTF8.self)
            for round in 0..<12 {
                try await pool.execute(
                    "INSERT INTO rules.person (app, user_id, settings) VALUES ('test', '1', \(settings)::jsonb)")
                for number in 0..<5 { try await place.thing("r\(round)-\(number)", users: "[1,2]") }
                let erasedAt = place.clock.now
                place.clock.advance(.seconds(8 * 3600))
                #expect(try await Self.left(pool)["held"] == 5)
                // Either what is held becomes gathered at that moment, or what is gathered is held for its summary.
                if round.isMultiple(of: 2) {
                    try await place.releaser.releaseDue()
                    place.clock.advance(.seconds(3600))
                    #expect(try await Self.left(pool)["digest_item"] == 3)
                }
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask { try await ErasureStore(pool: pool).erase(Self.one, at: erasedAt) }
                    for _ in 0..<2 {
                        group.addTask { try await place.bundler.closeDue() }
                        group.addTask { try await place.releaser.releaseDue() }
                    }
                    try await group.waitForAll()
                }
                #expect(try await Self.left(pool) == [:], "round \(round)")
                place.clock.set(GatheringTests.start + .seconds((round + 1) * 86_400))
            }
        }
    }

    @Test func `outcomes that come at that moment or later are not kept, and others are`() async throws {
        try await DecisionStoreTests().withHouse { (house: DecisionStoreTests.House) async throws in
            let pool = house.pool
            let handler = EventHandler(
                shelf: RuleShelf(house.book), store: DecisionStore(pool: pool), now: { house.clock.now })
            for round in 0..<15 {
                let inbound = delivered(
                    cloudEvent(id: "e-\(round)", data: #"{"users":[1,2],"name":"Pat","room":1}"#)
                ).at(house.clock.now)
                let verdict = try await handler.handle([
                    Delivery(inbound: inbound, message: try handler.decode(inbound))
                ])[0]
                let outcomes = try answers(to: verdict.outbound)
                let erasedAt = house.clock.now
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<3 { group.addTask { try await OutcomeStore(pool: pool).keep(outcomes) } }
                    group.addTask { try await ErasureStore(pool: pool).erase(Self.one, at: erasedAt) }
                    try await group.waitForAll()
                }
                try await OutcomeStore(pool: pool).keep(outcomes)
                #expect(try await RulesDatabase.count("rules.outcome", pool) == round + 1)
                #expect(try await Self.left(pool) == [:])
                house.clock.advance(.seconds(3600))
            }
        }
    }

    /// Whether somebody waits for their turn in this database.
    private static func waits(_ pool: PostgresPool) async throws -> Bool {
        try await pool.query(
            """
            SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
            """
        ).single()
    }

    @Test func `an outcome that is being kept is kept first, and one that is to be kept is kept after`() async throws {
        try await DecisionStoreTests().withHouse { (house: DecisionStoreTests.House) async throws in
            let pool = house.pool
            func notification(of user: String) async throws -> UUID {
                try await pool.query("SELECT notification FROM rules.decision WHERE user_id = \(user)").single()
            }
            #expect(try await house.happen("e", users: "[1,2]") == [["1", "2"]])
            let outcomes = Outcomes(
                trace: Trace(id: UUID(), correlation: "e", causation: "p"), app: Self.one.app, origin: .apns,
                environment: .production, lane: .interactive,
                outcomes: try await [notification(of: "1"), notification(of: "2")].map {
                    Outcome(notification: $0, device: nil, answer: .expired, at: .now, registeredAt: nil)
                })
            let erasedAt = house.clock.now
            let erasing = try await pool.transaction { transaction in
                try await transaction.execute(Turn.outcomes.shared)
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
                try await transaction.execute(Turn.outcomes.alone)
                let keeping = Task { try await OutcomeStore(pool: pool).keep([outcomes]) }
                try await eventually("the outcomes wait") { try await Self.waits(pool) }
                try await transaction.execute("DELETE FROM rules.decision")
                return keeping
            }
            try await keeping.value
            #expect(try await RulesDatabase.count("rules.outcome", pool) == 1)
        }
    }

    @Test func `a group is not joined, left or told for somebody who was forgotten since`() async throws {
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            let place = try GatheringTests.Place(
                pool, GatheringTests.rules("{ type: news }", to: #"{ group: "room/{{room}}" }"#))
            func members() async throws -> [String] {
                try await pool.query("SELECT user_id || ' ' || has_left FROM rules.member ORDER BY 1")
                    .map { try $0.decode(String.self, at: 0) }
            }
            try await place.happen("room.joined", #"{"room":1,"who":[1,2],"role":"clerk"}"#, at: "2026-01-10T11:00:00Z")
            try await ErasureStore(pool: pool).erase(Self.one, at: moment("2026-01-10T11:30:00Z"))
            #expect(try await members() == ["2 false"])
            // All of this happened before.
            try await place.happen("room.joined", #"{"room":1,"who":[1,3],"role":"clerk"}"#, at: "2026-01-10T11:10:00Z")
            try await place.happen("room.left", #"{"room":1,"who":[1]}"#, at: "2026-01-10T11:20:00Z")
            try await place.happen(
                "room.listed", #"{"room":1,"them":[{"id":1,"role":"boss"},{"id":2,"role":"boss"}]}"#,
                at: "2026-01-10T11:30:00Z")
            #expect(try await members() == ["2 false", "3 true"])
            try await place.happen("room.joined", #"{"room":1,"who":[1],"role":"clerk"}"#, at: "2026-01-10T11:40:00Z")
            #expect(try await members() == ["1 false", "2 false", "3 true"])
            #expect(try await place.thing("early", at: "2026-01-10T11:25:00Z") == ["2: early"])
            #expect(try await place.thing("now", at: "2026-01-10T11:50:00Z") == ["1,2: now"])
        }
    }
}

import Foundation
import Logging
import Postgres
import PushProtocol
import Testing

@testable import RuleLanguage
@testable import Rules

/// Retention: old rows are deleted in small steps, and rows still in use are kept.
@Suite(.timeLimit(.minutes(6))) struct HistoryStoreTests {
    static let now = moment("2026-06-01T12:00:00Z")
    static let terms = HistoryTerms.usual

    static func ago(_ days: Int) -> Date { (now + .seconds(-86_400 * days)).date }

    /// Notifications by name, each with its event, text, decisions, outcome, receipt and inbox item.
    struct Archive: Sendable {
        let pool: PostgresPool

        static func id(_ what: String) -> UUID { DerivedID.uuid5(DerivedID.namespace, [what]) }

        /// - Parameter steps: the age of each decision in days; the first is also the event's age.
        func add(_ name: String, steps: [Int], inbox: Int? = nil) async throws {
            let (event, notification) = (Self.id("event \(name)"), Self.id(name))
            let came = ago(steps[0])
            try await pool.execute(
                "INSERT INTO rules.event VALUES (\(event), 'test', '/up', \(name), 't', \(UUID()), \(came))")
            for (step, days) in steps.enumerated() {
                try await pool.execute(
                    """
                    INSERT INTO rules.decision (notification, step, event, rule, user_id, decided_at)
                    VALUES (\(notification), \(step), \(event), 'only', \(name), \(ago(days)))
                    """)
            }
            try await pool.execute(
                "INSERT INTO rules.outcome VALUES (\(notification), NULL, 'accepted', 'apns', NULL, \(ago(steps.last ?? 0)))"
            )
            try await pool.execute("INSERT INTO rules.receipt VALUES (\(notification), 'opened', \(came))")
            try await pool.execute(
                """
                INSERT INTO rules.saying (id, app, rule, lane, content, mutes, correlation, said_at)
                VALUES (\(Self.id("saying \(name)")), 'test', 'only', 'bulk', '{}', '{}', \(name), \(came))
                """)
            try await pool.execute(
                """
                INSERT INTO rules.inbox VALUES
                    (\(notification), 'test', \(name), \(Self.id("saying \(name)")), NULL, \(ago(inbox ?? steps[0])))
                """)
        }

        func wait(_ name: String) async throws {
            try await pool.execute(
                """
                INSERT INTO rules.held
                    (notification, app, user_id, saying, event, since, due_at, quiet_holds, step, kind)
                VALUES (\(Self.id(name)), 'test', \(name), \(Self.id("saying \(name)")), \(Self.id("event \(name)")),
                    \(ago(0)), \(ago(-1)), 0, 1, 'scheduled')
                """)
        }

        /// The distinct names in each table.
        func left() async throws -> [String: [String]] {
            var left: [String: [String]] = [:]
            for (table, pending) in [
                ("event", "SELECT id FROM rules.event"), ("decision", "SELECT DISTINCT user_id FROM rules.decision"),
                ("inbox", "SELECT user_id FROM rules.inbox"), ("saying", "SELECT correlation FROM rules.saying"),
            ] as [(String, SQL)] {
                left[table] = try await pool.query(pending).map { try $0.decode(String.self, at: 0) }.sorted()
            }
            let names = ["new", "old", "older", "scheduled", "gathered", "released", "kept"]
            for table in ["outcome", "receipt"] {
                let rows = try await pool.query("SELECT notification FROM rules.\(identifier: table)")
                let ids = try rows.map { try $0.decode(UUID.self, at: 0) }
                left[table] = names.filter { ids.contains(Self.id($0)) }.sorted()
            }
            return left
        }
    }

    static func sweeper(_ pool: PostgresPool, step: Int = 2, now: Timestamp = now) -> Sweeper {
        Sweeper(
            tombstones: TombstoneStore(pool: pool), history: HistoryStore(pool: pool, step: step), terms: terms,
            pause: .zero, now: { now }, logger: Logger(label: "tests"))
    }

    @Test func `old rows are deleted from every table, and rows in use are kept`() async throws {
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            let archive = Archive(pool: pool)
            try await archive.add("new", steps: [29])
            try await archive.add("old", steps: [31])
            try await archive.add("older", steps: [91])
            // Held for long; in a digest; released recently; put into the inbox when due.
            try await archive.add("scheduled", steps: [200])
            try await archive.wait("scheduled")
            try await archive.add("gathered", steps: [200])
            try await pool.execute(
                """
                INSERT INTO rules.digest_item
                    (app, user_id, bucket, item, notification, event, correlation, details, said_at, from_at)
                VALUES ('test', 'gathered', 'only', 'x', \(Archive.id("gathered")), \(UUID()), 'e', '{}',
                    \(Self.ago(200)), \(Self.ago(200)))
                """)
            try await archive.add("released", steps: [200, 29])
            try await archive.add("kept", steps: [200], inbox: 10)

            try await Self.sweeper(pool).sweep()
            let history = ["gathered", "new", "released", "scheduled"]
            let first = try await archive.left()
            #expect(first["decision"] == history)
            #expect(first["event"] == history)
            #expect(first["outcome"] == history)
            #expect(first["receipt"] == history)
            #expect(first["inbox"] == ["kept", "new", "old"])
            #expect(first["saying"] == ["kept", "new", "old", "scheduled"])
            // All decisions of a released notification are shown, also the first.
            #expect(
                try await pool.query("SELECT count(*) FROM rules.decision WHERE user_id = 'released'").single(Int.self)
                    == 2)
            // A second run finds nothing.
            try await Self.sweeper(pool).sweep()
            #expect(try await archive.left() == first)

            try await pool.execute("DELETE FROM rules.held")
            try await pool.execute("DELETE FROM rules.digest_item")
            try await Self.sweeper(pool, step: 1000, now: Self.now + .seconds(86_400 * 100)).sweep()
            #expect(try await archive.left().values.allSatisfy(\.isEmpty))
        }
    }

    @Test func `deletion starts at the oldest row, ends at the retention limit, and has one worker`() async throws {
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            let archive = Archive(pool: pool)
            for days in 28...34 { try await archive.add("\(days)", steps: [days]) }
            let store = HistoryStore(pool: pool, step: 2)
            var place: Date?
            var deleted: [Int] = []
            repeat {
                let step = try #require(
                    try await store.advance(.decision, after: place, Self.terms, now: Self.now + .milliseconds(1)))
                deleted.append(step.deleted)
                place = step.place
            } while place != nil
            #expect(deleted == [2, 2, 1])
            #expect(try await archive.left()["decision"] == ["28", "29"])
            try await pool.transaction { transaction in
                try await transaction.execute(AdvisoryLock.history.alone)
                #expect(try await store.advance(.event, after: nil, Self.terms, now: Self.now) == nil)
            }
        }
    }

    @Test func `a repeated event is not decided again while its row exists, even without outcomes`()
        async throws
    {
        try await DecisionStoreTests().withFixture { (fixture: DecisionStoreTests.DecisionFixture) async throws in
            #expect(try await fixture.handleEvent("a") == [["1"]])
            // The worst case: the decision is deleted, the event is not.
            try await fixture.pool.execute("DELETE FROM rules.decision")
            #expect(try await fixture.handleEvent("a") == [[]])
            #expect(try await RulesDatabase.counts(fixture.pool) == [1, 0, 0])
        }
    }

    /// Fills tables so that a sequential scan is too slow; most rows are not old.
    static func fillMuch(_ pool: PostgresPool) async throws {
        let statements: [SQL] = [
            """
            INSERT INTO rules.event SELECT md5('e' || n)::uuid, 'test', '/up', n::text, 't', md5('s')::uuid,
                now() - n * interval '1 minute' FROM generate_series(1, 60000) AS n
            """,
            """
            INSERT INTO rules.decision (notification, event, rule, user_id, decided_at)
            SELECT md5('n' || n)::uuid, md5('e' || n)::uuid, 'only', 'user-' || n % 20000, now() - n * interval '1 minute'
            FROM generate_series(1, 60000) AS n
            """,
            """
            INSERT INTO rules.outcome SELECT md5('n' || n)::uuid, NULL, 'accepted', 'apns', NULL,
                now() - n * interval '1 minute' FROM generate_series(1, 60000) AS n
            """,
            """
            INSERT INTO rules.receipt SELECT md5('n' || n)::uuid, 'opened', now() - n * interval '1 minute'
            FROM generate_series(1, 60000) AS n
            """,
            """
            INSERT INTO rules.saying (id, app, rule, lane, content, mutes, correlation, said_at)
            SELECT md5('s' || n)::uuid, 'test', 'only', 'bulk', '{}', '{}', 'e', now() - n * interval '1 minute'
            FROM generate_series(1, 60000) AS n
            """,
            """
            INSERT INTO rules.inbox SELECT md5('n' || n)::uuid, 'test', 'user-' || n % 20000, md5('s' || n)::uuid, NULL,
                now() - n * interval '1 minute' FROM generate_series(1, 60000) AS n
            """,
            """
            INSERT INTO rules.held (notification, app, user_id, saying, event, since, due_at, quiet_holds, step, kind)
            SELECT md5('n' || n)::uuid, 'test', 'user-' || n % 20000, md5('s' || n)::uuid, md5('e' || n)::uuid, now(),
                now(), 0, 1, CASE WHEN n % 3 = 0 THEN 'summary' ELSE 'scheduled' END FROM generate_series(1, 30000) AS n
            """,
            """
            INSERT INTO rules.member SELECT 'test', 'room/' || n % 100, 'user-' || n, NULL, false, now()
            FROM generate_series(1, 30000) AS n
            """,
            """
            INSERT INTO rules.erasure SELECT md5('p' || n)::uuid, now() - n * interval '1 minute', now()
            FROM generate_series(1, 30000) AS n
            """,
            """
            INSERT INTO rules.digest_item
                (app, user_id, bucket, item, notification, event, correlation, details, said_at, from_at)
            SELECT 'test', 'user-' || n, 'only', 'x', md5('n' || n)::uuid, md5('e' || n)::uuid, 'e', '{}', now(), now()
            FROM generate_series(1, 30000) AS n
            """,
        ]
        for statement in statements { try await pool.execute(statement) }
        try await pool.execute("ANALYZE")
    }

    static func plan(_ pending: SQL, _ pool: PostgresPool) async throws -> String {
        try await pool.query("EXPLAIN \(pending)").map { try $0.decode(String.self, at: 0) }.joined(separator: "\n")
    }

    @Test func `old rows are found by an index among many newer ones`() async throws {
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            try await Self.fillMuch(pool)
            let past = Date.now.addingTimeInterval(-86_400 * 30)
            let place = past.addingTimeInterval(-3600)
            for table in HistoryStore.Table.allCases {
                for pending in [
                    HistoryStore.end(of: 1000, table, after: place, past: past),
                    HistoryStore.end(of: 1000, table, after: nil, past: past),
                    HistoryStore.deletion(table, after: place, until: past, past: past, now: .now),
                ] {
                    let plan = try await Self.plan(pending, pool)
                    #expect(!plan.contains("Seq Scan"), "\(table):\n\(plan)")
                }
            }
        }
    }
}

private func ago(_ days: Int) -> Date { HistoryStoreTests.ago(days) }

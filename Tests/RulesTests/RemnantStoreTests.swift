import Postgres
import PushProtocol
import Testing

@testable import Rules

/// What is over is deleted, and nothing else.
@Suite(.timeLimit(.minutes(4))) struct RemnantStoreTests {
    @Test func `what can matter no more is deleted, and what can is kept`() async throws {
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            let now = moment("2026-03-10T12:00:00Z")
            let long = moment("2026-01-10T12:00:00Z").date
            let lately = moment("2026-03-09T12:00:00Z").date
            for (name, at) in [("old", long), ("new", lately)] {
                try await pool.execute("INSERT INTO rules.done VALUES ('test', \(name), \(at))")
                try await pool.execute(
                    "INSERT INTO rules.told VALUES ('test', '1', \(name), \(name == "old" ? now.date : (now + .seconds(1)).date))"
                )
                for hasLeft in [true, false] {
                    try await pool.execute(
                        "INSERT INTO rules.member VALUES ('test', \(name), \(hasLeft ? "left" : "there"), NULL, \(hasLeft), \(at))"
                    )
                }
                for bucket in ["empty", "full", "planned"] {
                    try await pool.execute(
                        """
                        INSERT INTO rules.digest (app, user_id, bucket, rule, planned_at, close_at)
                        VALUES ('test', \(name), \(bucket), 'only', \(at), \(bucket == "planned" ? now.date : nil))
                        """)
                }
                try await pool.execute(
                    """
                    INSERT INTO rules.digest_item
                        (app, user_id, bucket, item, notification, event, correlation, details, said_at, from_at)
                    VALUES ('test', \(name), 'full', 'x', gen_random_uuid(), gen_random_uuid(), 'e', '{}', \(at), \(at))
                    """)
            }
            let store = RemnantStore(pool: pool)
            #expect(try await !store.sweep(now: now))
            func left(_ query: SQL) async throws -> [String] {
                try await pool.query(query).map { try $0.decode(String.self, at: 0) }
            }
            #expect(try await left("SELECT item FROM rules.done") == ["new"])
            #expect(try await left("SELECT key FROM rules.told") == ["new"])
            #expect(
                try await left("SELECT circle || ' ' || user_id FROM rules.member ORDER BY 1") == [
                    "new left", "new there", "old there",
                ])
            #expect(
                try await left("SELECT user_id || ' ' || bucket FROM rules.digest ORDER BY 1") == [
                    "new empty", "new full", "new planned", "old full", "old planned",
                ])
        }
    }
}

import FoundationEssentials
import Postgres
import PushProtocol
import Testing

@testable import RuleLanguage
@testable import Rules

/// Tombstones are deleted after their retention, and nothing else.
@Suite(.timeLimit(.minutes(4))) struct TombstoneStoreTests {
    @Test func `expired tombstones are deleted, and others are kept`() async throws {
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            let now = moment("2026-03-10T12:00:00Z")
            let long = moment("2026-01-10T12:00:00Z").date
            let lately = moment("2026-03-09T12:00:00Z").date
            for (name, at) in [("old", long), ("new", lately)] {
                let empty = "told \(name)"
                try await pool.execute("INSERT INTO rules.done VALUES ('test', \(name), \(at))")
                try await pool.execute("INSERT INTO rules.done_by VALUES ('test', 'i', \(name), \(at))")
                try await pool.execute(
                    "INSERT INTO rules.told VALUES ('test', '1', \(name), \(name == "old" ? now.date : (now + .seconds(1)).date))"
                )
                try await pool.execute("INSERT INTO rules.circle VALUES ('test', \(empty), \(at))")
                try await pool.execute("INSERT INTO rules.circle VALUES ('test', \(name), \(at))")
                try await pool.execute("INSERT INTO rules.erasure VALUES (gen_random_uuid(), \(long), \(at))")
                // One ended fan-out, and one still running.
                try await pool.execute(
                    """
                    INSERT INTO rules.crowd (event, rule, arrived_at, due_at, ended_at)
                    VALUES (gen_random_uuid(), 'only', \(long), NULL, \(at)), (gen_random_uuid(), 'only', \(long), \(at), NULL)
                    """)
                try await pool.execute(
                    "INSERT INTO rules.presence VALUES ('test', '1', \(name), NULL, \(name == "old" ? lately : now.date))"
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
            for (name, ended) in [("a", long), ("b", now.date), ("c", nil)] as [(String, Date?)] {
                try await pool.execute(
                    """
                    INSERT INTO rules.revocation (id, app, event_id, inbox, source, requested_by, due_at, ended_at)
                    VALUES (gen_random_uuid(), 'test', \(name), 'remove', 'operator', 'desk',
                        \(ended == nil ? long : nil), \(ended))
                    """)
            }
            for stored in [long, now.date] {
                try await pool.execute(
                    """
                    INSERT INTO rules.inbox_removal (notification, app, user_id, at)
                    VALUES (gen_random_uuid(), 'test', '1', \(stored))
                    """)
                try await pool.execute(
                    """
                    INSERT INTO rules.shown_copy
                        (notification, app, user_id, identifier, decided_at, noted_at, is_accepted)
                    VALUES (gen_random_uuid(), 'test', '1', 'x', \(long), \(stored), true)
                    """)
                try await pool.execute(
                    """
                    INSERT INTO rules.clear_command (app, user_id, due_at, noted_at)
                    VALUES ('test', \("\(stored)"), NULL, \(stored)), ('due', \("\(stored)"), \(long), \(stored))
                    """)
                try await pool.execute(
                    """
                    INSERT INTO rules.replacement (notification, app, user_id, event, rule, original, identifier, at)
                    VALUES (gen_random_uuid(), 'test', '1', gen_random_uuid(), 'only', gen_random_uuid(), 'x', \(stored))
                    """)
                try await pool.execute(
                    """
                    INSERT INTO rules.event_item (event, rule, app, item, occurred_at, stored_at)
                    VALUES (gen_random_uuid(), 'only', 'test', 'i', \(long), \(stored))
                    """)
            }
            let store = TombstoneStore(pool: pool)
            // Not done yet: the row stays until then.
            try await pool.execute("INSERT INTO rules.erasure VALUES (gen_random_uuid(), \(long), NULL)")
            let swept = try await store.sweep(now: now)
            #expect(!swept.isMore)
            #expect(
                swept.deleted == [
                    "told": 1, "done": 1, "done_by": 1, "member": 1, "report": 0, "presence": 1, "erasure": 1,
                    "circle": 1, "digest": 1, "crowd": 1, "revocation": 1, "event_item": 1,
                    "shown_copy": 1, "clear_command": 1, "inbox_removal": 1, "replacement": 1,
                ])
            #expect(try await RulesDatabase.count("rules.erasure", pool) == 2)
            func left(_ query: SQL) async throws -> [String] {
                try await pool.query(query).map { try $0.decode(String.self, at: 0) }
            }
            #expect(try await left("SELECT item FROM rules.done") == ["new"])
            #expect(try await left("SELECT user_id FROM rules.done_by") == ["new"])
            #expect(try await left("SELECT key FROM rules.told") == ["new"])
            // A group without members; the others are kept for late events about them.
            #expect(try await left("SELECT circle FROM rules.circle ORDER BY 1") == ["new", "old", "told new"])
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

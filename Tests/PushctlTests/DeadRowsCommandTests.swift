import Foundation
import Postgres
import PushProtocol
import ServiceConnections
import Testing
import TestSupport

@testable import Pushctl

/// Dead rows in the services' tables, as an operator lists and changes them.
@Suite(.timeLimit(.minutes(2))) struct DeadRowsCommandTests {
    private static let held = UUID(uuidString: "11111111-1111-5111-8111-111111111111")!
    private static let event = UUID(uuidString: "22222222-2222-5222-8222-222222222222")!

    private func withRows(_ body: (DeadRowStore, PostgresPool) async throws -> Void) async throws {
        try await TestSchema.rules.withPool { (pool: PostgresPool) async throws in
            try await pool.execute(
                """
                INSERT INTO rules.held
                    (notification, app, user_id, saying, event, since, due_at, quiet_holds, step, dead_at, dead_reason)
                SELECT id, app, '1', gen_random_uuid(), gen_random_uuid(), now(), now(), 0, 0, dead_at, reason
                FROM (VALUES
                    (\(Self.held), 'family', now(), 'unreadable'), (gen_random_uuid(), 'family', NULL, NULL),
                    (gen_random_uuid(), 'seek', now() - interval '1 day', 'failed')
                ) AS new (id, app, dead_at, reason)
                """)
            try await pool.execute(
                """
                INSERT INTO rules.crowd (event, rule, body, arrived_at, due_at, dead_at, dead_reason)
                VALUES (\(Self.event), 'all', '{"app":"family"}', now(), now(), now(), 'unreadable')
                """)
            try await pool.execute(
                """
                INSERT INTO rules.digest (app, user_id, bucket, rule, planned_at, dead_at, dead_reason)
                VALUES ('family', '1', 'only/a', 'only', now(), now(), 'unreadable')
                """)
            try await pool.execute(
                """
                INSERT INTO rules.digest_item
                    (app, user_id, bucket, item, notification, event, correlation, details, said_at, from_at)
                VALUES ('family', '1', 'only/a', 'i', gen_random_uuid(), gen_random_uuid(), 'c', '{}', now(), now())
                """)
            try await pool.execute(
                """
                INSERT INTO rules.person (app, user_id, settings, dead_at, dead_reason)
                VALUES ('family', '1', '{"zone":"Nowhere"}', now(), 'unreadable')
                """)
            try await body(DeadRowStore(pool, tables: DeadRowTable.all), pool)
        }
    }

    private func count(_ table: SQL, _ pool: PostgresPool) async throws -> Int {
        try await pool.query("SELECT count(*) FROM \(table)").single()
    }

    @Test func `list prints table, app, reason and key of each row, and the number omitted`()
        async throws
    {
        try await withRows { (store: DeadRowStore, _: PostgresPool) async throws in
            let entries = try await store.list(.init(), limit: 1)
            let names = entries.map { "\($0.table) \($0.app ?? "-") \($0.reason) \($0.key)" }
            #expect(
                names == [
                    "rules.held family unreadable \(Self.held.uuidString.lowercased())",
                    "rules.crowd family unreadable \(Self.event.uuidString.lowercased())/all",
                    "rules.digest family unreadable family/1/only/a", "rules.person family unreadable family/1",
                ])
            let lines = DeadRowsCommand.List.lines(entries, try await store.count(.init()))
            #expect(lines.count == 6 && lines.last == "1 more in rules.held; raise --limit")
            #expect(lines[0].hasPrefix("dead at ") && lines[0].hasSuffix(" key"))
            let json = DeadRowsCommand.List.json(entries, try await store.count(.init()))
            #expect(json["unlisted"] == [["table": "rules.held", "count": 1]])
            #expect(json["rows"]?.array?.first?["reason"] == "unreadable")
            #expect(DeadRowsCommand.List.lines([], []) == ["there are no dead rows"])
        }
    }

    @Test func `a filter selects by table, app, reason and key`() async throws {
        try await withRows { (store: DeadRowStore, _: PostgresPool) async throws in
            let held = "rules.held"
            let filters: [(DeadRowStore.RowFilter, Int)] = [
                (.init(), 5), (.init(table: held), 2), (.init(app: "family"), 4), (.init(app: "seek"), 1),
                (.init(reason: "failed"), 1), (.init(table: held, app: "family"), 1), (.init(key: "family/1"), 1),
                (.init(key: "no"), 0),
            ]
            for (filter, count) in filters {
                #expect(try await store.count(filter).reduce(0) { $0 + $1.count } == count, "\(filter)")
            }
        }
    }

    @Test func `a retried row is alive again, and other rows are unchanged`() async throws {
        try await withRows { (store: DeadRowStore, pool: PostgresPool) async throws in
            #expect(try await store.apply(.retry, about: .init(app: "family")) == 4)
            #expect(try await store.apply(.retry, about: .init(app: "family")) == 0)
            #expect(try await count("rules.held WHERE dead_at IS NULL AND dead_reason IS NULL", pool) == 2)
            #expect(try await count("rules.held WHERE dead_reason = 'failed'", pool) == 1)
            #expect(try await count("rules.crowd WHERE body IS NOT NULL AND dead_at IS NULL", pool) == 1)
        }
    }

    @Test func `drop deletes rows, buckets with items, fan-outs and preferences`()
        async throws
    {
        try await withRows { (store: DeadRowStore, pool: PostgresPool) async throws in
            #expect(try await store.apply(.drop, about: .init()) == 5)
            #expect(try await count("rules.held", pool) == 1)
            #expect(try await count("rules.digest", pool) == 0)
            #expect(try await count("rules.digest_item", pool) == 0)
            #expect(
                try await count("rules.crowd WHERE body IS NULL AND due_at IS NULL AND ended_at < now()", pool) == 1)
            #expect(try await count("rules.person WHERE settings = '{}' AND dead_at IS NULL", pool) == 1)
            #expect(try await store.list(.init(), limit: 10).isEmpty)
        }
    }

    @Test func `missing tables are skipped`() async throws {
        try await TestSchema.feedback.withPool { (pool: PostgresPool) async throws in
            #expect(try await DeadRowStore(pool, tables: DeadRowTable.all).list(.init(), limit: 10).isEmpty)
        }
    }

    @Test func `the list has every table with dead rows`() async throws {
        for schema in [TestSchema.rules, .registry, .feedback] {
            try await schema.withPool { (pool: PostgresPool) async throws in
                let rows = try await pool.query(
                    """
                    SELECT table_schema || '.' || table_name FROM information_schema.columns
                    WHERE column_name = 'dead_at' AND table_schema = \(schema.rawValue)
                        -- A dead range has its cursor in a dead-letter queue: pushctl dead replay.
                        AND table_name <> 'campaign_range'
                    """)
                let tables = try rows.map { try $0.decode(String.self, at: 0) }
                #expect(Set(tables) == Set(DeadRowTable.all.map(\.name).filter { $0.hasPrefix("\(schema.rawValue).") }))
            }
        }
    }

    @Test func `a command that changes rows needs a criterion or --all`() throws {
        typealias RowOptions = DeadRowsCommand.RowOptions
        let everything = DeadRowStore.RowFilter()
        let some = DeadRowStore.RowFilter(table: try RowOptions.table("rules.held"))
        #expect(some.table == "rules.held")
        #expect(throws: CommandError.self) { try RowOptions.table("rules.heldd") }
        #expect(try RowOptions.checked(some, all: false) == some)
        #expect(throws: CommandError.self) { try RowOptions.checked(everything, all: false) }
        #expect(throws: CommandError.self) { try RowOptions.checked(some, all: true) }
        #expect(try RowOptions.checked(everything, all: true) == everything)
    }
}

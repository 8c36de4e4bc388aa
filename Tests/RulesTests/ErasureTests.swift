import Foundation
import Messaging
import Postgres
import PushProtocol
import TestSupport
import Testing

@testable import Rules

/// Whoever asked to be forgotten is, whatever is under way about them.
@Suite(.timeLimit(.minutes(8))) struct ErasureTests {
    static let erin = PersonKey(app: AppID(rawValue: "test")!, user: user("erin-1701"))

    /// A row or more of one person in every table, as the service writes them.
    private static func fill(_ person: PersonKey, _ pool: PostgresPool) async throws {
        let (app, user) = (person.app.rawValue, person.user.rawValue)
        let now = DecisionStoreTests.now.date
        func id(_ what: String) -> UUID { DerivedID.uuid5(DerivedID.namespace, [what, app, user]) }
        let event = id("event")
        var statements: [SQL] = [
            "INSERT INTO rules.event VALUES (\(event), \(app), '/up', \(UUID().uuidString), 't', \(UUID()), \(now))",
            "INSERT INTO rules.person (app, user_id) VALUES (\(app), \(user))",
            "INSERT INTO rules.presence (app, user_id, device, expires_at) VALUES (\(app), \(user), '-', \(now))",
            "INSERT INTO rules.member VALUES (\(app), 'room', \(user), NULL, false, \(now))",
            "INSERT INTO rules.told VALUES (\(app), \(user), 'k', \(now))",
            "INSERT INTO rules.badge (app, user_id, due_at) VALUES (\(app), \(user), \(now))",
            "INSERT INTO rules.preference_change (app, user_id) VALUES (\(app), \(user))",
            """
            INSERT INTO rules.digest (app, user_id, bucket, rule, planned_at)
            VALUES (\(app), \(user), 'only', 'only', \(now))
            """,
            """
            INSERT INTO rules.digest_item
                (app, user_id, bucket, item, notification, event, correlation, details, said_at, from_at)
            VALUES (\(app), \(user), 'only', 'x', \(id("gathered")), \(event), 'e', '{}', \(now), \(now))
            """,
        ]
        for what in ["pushed", "held", "gathered", "shared"] {
            let content = #"{"body":"\#(what) to \#(user)"}"#
            let saying = what == "shared" ? DerivedID.uuid5(DerivedID.namespace, ["shared"]) : id("saying \(what)")
            statements += [
                """
                INSERT INTO rules.decision (notification, step, event, rule, user_id, decided_at)
                SELECT \(id(what)), step, \(event), 'only', \(user), \(now) FROM generate_series(0, 1) AS step
                """,
                """
                INSERT INTO rules.saying (id, app, rule, lane, content, mutes, correlation, said_at)
                VALUES (\(saying), \(app), 'only', 'bulk', \(content)::json, '{}', 'e', \(now))
                ON CONFLICT DO NOTHING
                """,
                "INSERT INTO rules.inbox VALUES (\(id(what)), \(app), \(user), \(saying), NULL, \(now))",
                "INSERT INTO rules.outcome VALUES (\(id(what)), NULL, 'accepted', 'apns', NULL, \(now))",
                "INSERT INTO rules.receipt VALUES (\(id(what)), 'opened', \(now))",
                "INSERT INTO rules.report VALUES (\(id(what)), \(app), \(user), 'only', 'e', NULL, \(now))",
            ]
        }
        // What is summed up is not decided about yet; what was deleted from the history may still be in the inbox.
        for (what, kind) in [("held", "held"), ("summary", "summary")] {
            statements.append(
                """
                INSERT INTO rules.held
                    (notification, app, user_id, saying, event, since, due_at, quiet_holds, step, kind)
                VALUES (\(id(what)), \(app), \(user), \(id("saying held")), \(event), \(now), \(now), 0, 1, \(kind))
                """)
        }
        statements.append(
            "INSERT INTO rules.inbox VALUES (\(id("old")), \(app), \(user), \(id("saying pushed")), NULL, \(now))")
        for statement in statements { try await pool.execute(statement) }
    }

    /// How many rows of each table are of these people, of those that have a column for it.
    private static func rows(of person: PersonKey, _ pool: PostgresPool) async throws -> [String: Int] {
        var counts: [String: Int] = [:]
        let tables = try await pool.query(
            """
            SELECT table_name::text, bool_or(column_name = 'app') FROM information_schema.columns
            WHERE table_schema = 'rules' GROUP BY table_name HAVING bool_or(column_name = 'user_id')
            """)
        for table in tables {
            let name = try table.decode(String.self, at: 0)
            let app: SQL = try table.decode(Bool.self, at: 1) ? "AND app = \(person.app.rawValue)" : ""
            counts[name] = try await pool.query(
                "SELECT count(*) FROM rules.\(identifier: name) WHERE user_id = \(person.user.rawValue) \(app)"
            ).single(Int.self)
        }
        return counts
    }

    /// Tables in which this stands anywhere.
    private static func tables(with text: String, _ pool: PostgresPool) async throws -> Set<String> {
        var found: Set<String> = []
        for row in try await pool.query(
            "SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'rules'")
        {
            let name = try row.decode(String.self, at: 0)
            let count = try await pool.query(
                """
                SELECT count(*) FROM rules.\(identifier: name) AS one WHERE position(\(text) IN one::text) > 0
                """
            ).single(Int.self)
            if count > 0 { found.insert(name) }
        }
        return found
    }

    @Test func `nothing is left of whoever asks, in any table that there is, and others keep all of theirs`()
        async throws
    {
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            let others = [
                PersonKey(app: Self.erin.app, user: user("bob")),
                // The same name in another app is somebody else, which decisions do not say by themselves.
                PersonKey(app: AppID(rawValue: "other")!, user: user("bob-too")),
            ]
            for person in [Self.erin] + others { try await Self.fill(person, pool) }
            let before = try await Self.rows(of: Self.erin, pool)
            // A table that is added must be filled above, and erased.
            #expect(before.filter { $0.value == 0 } == [:])
            let kept = try await others.asyncMap { try await Self.rows(of: $0, pool) }
            let shared = try await RulesDatabase.count("rules.saying", pool)

            #expect(try await ErasureStore(pool: pool, batch: 2).erase(Self.erin, at: DecisionStoreTests.now))
            #expect(try await Self.rows(of: Self.erin, pool).filter { $0.value > 0 } == [:])
            #expect(try await others.asyncMap { try await Self.rows(of: $0, pool) } == kept)
            // What others were told too is still theirs; it was said to her first.
            #expect(try await Self.tables(with: "erin-1701", pool) == ["saying"])
            try await pool.execute("DELETE FROM rules.saying WHERE content::text LIKE '%shared%'")
            #expect(try await Self.tables(with: "erin-1701", pool) == [])
            #expect(try await RulesDatabase.count("rules.saying", pool) == shared - 4)
            // Those without a column for people: what hangs on notifications is as much as others have.
            for table: SQL in ["rules.outcome", "rules.receipt"] {
                #expect(try await RulesDatabase.count(table, pool) == 8)
            }
        }
    }

    @Test func `the same name in another app is another person`() async throws {
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            let namesake = PersonKey(app: AppID(rawValue: "other")!, user: Self.erin.user)
            for person in [Self.erin, namesake] { try await Self.fill(person, pool) }
            try await ErasureStore(pool: pool).erase(Self.erin, at: DecisionStoreTests.now)
            // Decisions have no column for the app.
            var rows = try await Self.rows(of: namesake, pool)
            #expect(rows.removeValue(forKey: "decision") == 8)
            #expect(rows.filter { $0.value == 0 } == [:])
            #expect(try await Self.rows(of: Self.erin, pool).filter { $0.value > 0 } == ["decision": 8])
        }
    }

    @Test func `every table is known to erasure`() async throws {
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            // What has no column for people, and why nothing of them is in it.
            let impersonal: Set<String> = [
                "event",  // of the upstream, and what it is known by
                "saying", "outcome", "receipt",  // go with the notifications that refer to them
                "done", "circle",  // of things and groups
                "erasure",  // knows nobody by name
                "api_key",  // of operators
                "tally", "tally_hour",  // of rules
                "crowd",  // an event, and nothing any more once everybody was told
                "migration", "delivery",
            ]
            var tables: Set<String> = []
            for row in try await pool.query(
                "SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'rules'")
            { tables.insert(try row.decode(String.self, at: 0)) }
            #expect(tables.subtracting(try await Self.rows(of: Self.erin, pool).keys) == impersonal)
        }
    }

    @Test func `what is done already is not done again to whoever came back`() async throws {
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            let store = ErasureStore(pool: pool)
            let (first, later) = (DecisionStoreTests.now, DecisionStoreTests.now + .seconds(60))
            #expect(try await store.erase(Self.erin, at: first))
            try await pool.execute("INSERT INTO rules.person (app, user_id) VALUES ('test', 'erin-1701')")
            #expect(try await !store.erase(Self.erin, at: first))
            #expect(try await RulesDatabase.count("rules.person", pool) == 1)
            #expect(try await store.erase(Self.erin, at: later))
            #expect(try await RulesDatabase.count("rules.person", pool) == 0)
            #expect(try await !store.erase(Self.erin, at: first))
            // Whoever died in the middle of it left it to the next.
            try await pool.execute("UPDATE rules.erasure SET done_at = NULL")
            try await pool.execute("INSERT INTO rules.person (app, user_id) VALUES ('test', 'erin-1701')")
            #expect(try await store.erase(Self.erin, at: later))
            #expect(try await RulesDatabase.count("rules.person", pool) == 0)
        }
    }

    @Test func `the registry's word is heard, and other words of it are not about people`() async throws {
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            try await Self.fill(Self.erin, pool)
            let handler = ErasureHandler(store: ErasureStore(pool: pool))
            func deliver(_ change: DeviceEvent.Change) async throws {
                let event = DeviceEvent(
                    trace: Trace(id: UUID(), correlation: "c", causation: "c"), app: Self.erin.app, change: change,
                    user: Self.erin.user, device: nil, at: DecisionStoreTests.now)
                let inbound = Inbound(
                    queue: .rulesErasures, exchange: "devices", routingKey: event.routingKey,
                    body: try event.wireBody())
                let delivery = Delivery(inbound: inbound, message: try handler.decode(inbound))
                #expect(try await handler.handle([delivery, delivery]).map(\.disposition) == [.done, .done])
            }
            try await deliver(.erased)
            #expect(try await RulesDatabase.count("rules.inbox", pool) == 5)
            try await deliver(.userErased)
            #expect(try await Self.rows(of: Self.erin, pool).filter { $0.value > 0 } == [:])
        }
    }

    /// The statements that look for what is somebody's, on tables that are too large to be read through.
    @Test func `what is somebody's is found by an index`() async throws {
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            try await HistoryStoreTests.fillMuch(pool)
            for statement in [
                ErasureStore.notifications(of: Self.erin, limit: 500), ErasureStore.unsaid([UUID(), UUID()]),
                "DELETE FROM rules.member WHERE app = 'test' AND user_id = 'erin-1701'",
                "SELECT EXISTS (SELECT FROM rules.erasure WHERE erased_at >= now())",
            ] as [SQL] {
                let plan = try await HistoryStoreTests.plan(statement, pool)
                #expect(!plan.contains("Seq Scan"), "\(plan)")
            }
        }
    }
}

extension Sequence where Self: Sendable, Element: Sendable {
    fileprivate func asyncMap<T>(_ transform: (Element) async throws -> T) async rethrows -> [T] {
        var values: [T] = []
        for element in self { values.append(try await transform(element)) }
        return values
    }
}

import Foundation
import Messaging
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// Erasure of a user's data, also during concurrent work about that user.
@Suite(.timeLimit(.minutes(8))) struct ErasureTests {
    static let erin = PersonKey(app: AppID(rawValue: "test")!, user: user("erin-1701"))

    /// Writes at least one row about a user to every table, as the service does.
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
            "INSERT INTO rules.done_by VALUES (\(app), 'item', \(user), \(now))",
            "INSERT INTO rules.badge (app, user_id, due_at) VALUES (\(app), \(user), \(now))",
            "INSERT INTO rules.preference_change (app, user_id) VALUES (\(app), \(user))",
            """
            INSERT INTO rules.inbox_removal (notification, app, user_id, at)
            VALUES (\(id("removed")), \(app), \(user), \(now))
            """,
            """
            INSERT INTO rules.replacement (notification, app, user_id, event, rule, original, identifier, at)
            VALUES (\(id("new texts")), \(app), \(user), \(event), 'only', \(id("pushed")), 'x', \(now))
            """,
            "INSERT INTO rules.clear_command (app, user_id, noted_at) VALUES (\(app), \(user), \(now))",
            """
            INSERT INTO rules.shown_copy
                (notification, app, user_id, identifier, decided_at, noted_at, is_accepted, command)
            VALUES (\(id("pushed")), \(app), \(user), 'x', \(now), \(now), true, \(id("command")))
            """,
            "INSERT INTO rules.outcome VALUES (\(id("command")), NULL, 'accepted', 'apns', NULL, \(now))",
            """
            INSERT INTO rules.revocation (id, app, event_id, user_id, inbox, source, requested_by)
            VALUES (\(id("revocation")), \(app), 'e', \(user), 'remove', 'operator', 'desk')
            """,
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
            let rendered = what == "shared" ? DerivedID.uuid5(DerivedID.namespace, ["shared"]) : id("saying \(what)")
            statements += [
                """
                INSERT INTO rules.decision (notification, step, event, rule, user_id, decided_at)
                SELECT \(id(what)), step, \(event), 'only', \(user), \(now) FROM generate_series(0, 1) AS step
                """,
                """
                INSERT INTO rules.saying (id, app, rule, lane, content, mutes, correlation, said_at)
                VALUES (\(rendered), \(app), 'only', 'bulk', \(content)::json, '{}', 'e', \(now))
                ON CONFLICT DO NOTHING
                """,
                "INSERT INTO rules.inbox VALUES (\(id(what)), \(app), \(user), \(rendered), NULL, \(now))",
                "INSERT INTO rules.outcome VALUES (\(id(what)), NULL, 'accepted', 'apns', NULL, \(now))",
                "INSERT INTO rules.receipt VALUES (\(id(what)), 'opened', \(now))",
                "INSERT INTO rules.report VALUES (\(id(what)), \(app), \(user), 'only', 'e', NULL, \(now))",
            ]
        }
        // A digest item has no decision yet. An inbox item may outlive the history.
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

    /// The number of rows about a user in each table with a user column.
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

    /// The tables that contain this text in any column.
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

    @Test func `erasure removes a user from every table, and other users keep their rows`()
        async throws
    {
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            let others = [
                PersonKey(app: Self.erin.app, user: user("bob")),
                // The same user id in another app is another user. Decisions have no app column.
                PersonKey(app: AppID(rawValue: "other")!, user: user("bob-too")),
            ]
            for person in [Self.erin] + others { try await Self.fill(person, pool) }
            let before = try await Self.rows(of: Self.erin, pool)
            // A new table must be filled above, and erased.
            #expect(before.filter { $0.value == 0 } == [:])
            let kept = try await others.asyncMap { try await Self.rows(of: $0, pool) }
            let shared = try await RulesDatabase.count("rules.saying", pool)

            #expect(try await ErasureStore(pool: pool, batch: 2).erase(Self.erin, at: DecisionStoreTests.now))
            #expect(try await Self.rows(of: Self.erin, pool).filter { $0.value > 0 } == [:])
            #expect(try await others.asyncMap { try await Self.rows(of: $0, pool) } == kept)
            // A text that other users got too is kept for them.
            #expect(try await Self.tables(with: "erin-1701", pool) == ["saying"])
            try await pool.execute("DELETE FROM rules.saying WHERE content::text LIKE '%shared%'")
            #expect(try await Self.tables(with: "erin-1701", pool) == [])
            #expect(try await RulesDatabase.count("rules.saying", pool) == shared - 4)
            // Tables without a user column: rows of notifications are as many as other users have.
            #expect(try await RulesDatabase.count("rules.receipt", pool) == 8)
            // With the outcome of each clear command.
            #expect(try await RulesDatabase.count("rules.outcome", pool) == 10)
        }
    }

    @Test func `the same user id in another app is another user`() async throws {
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            let namesake = PersonKey(app: AppID(rawValue: "other")!, user: Self.erin.user)
            for person in [Self.erin, namesake] { try await Self.fill(person, pool) }
            try await ErasureStore(pool: pool).erase(Self.erin, at: DecisionStoreTests.now)
            // Decisions have no app column.
            var rows = try await Self.rows(of: namesake, pool)
            #expect(rows.removeValue(forKey: "decision") == 8)
            #expect(rows.filter { $0.value == 0 } == [:])
            #expect(try await Self.rows(of: Self.erin, pool).filter { $0.value > 0 } == ["decision": 8])
        }
    }

    @Test func `every table is known to erasure`() async throws {
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            // Tables without a user column, and the reason that they hold no user data.
            let impersonal: Set<String> = [
                "event",  // the upstream id of an event
                "saying", "outcome", "receipt",  // deleted with their notifications
                "done", "circle", "event_item",  // about items and groups
                "channel",  // about items
                "erasure",  // stores no user id
                "api_key",  // about operators
                "tally", "tally_hour", "stopped_variant",  // about rules
                "crowd",  // an event; emptied at the end of the fan-out
                "census_report", "census_interval", "census_count", "census_gap", "census_lease",  // notification ids
                "recording",  // found by its digests of names; RecordingStoreTests erases
                "migration", "delivery",
            ]
            var tables: Set<String> = []
            for row in try await pool.query(
                "SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'rules'")
            { tables.insert(try row.decode(String.self, at: 0)) }
            #expect(tables.subtracting(try await Self.rows(of: Self.erin, pool).keys) == impersonal)
        }
    }

    @Test func `a repeated erasure does not affect a user who returned`() async throws {
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
            // After a crash, the next process continues.
            try await pool.execute("UPDATE rules.erasure SET done_at = NULL")
            try await pool.execute("INSERT INTO rules.person (app, user_id) VALUES ('test', 'erin-1701')")
            #expect(try await store.erase(Self.erin, at: later))
            #expect(try await RulesDatabase.count("rules.person", pool) == 0)
        }
    }

    @Test func `the registry's erasure event is handled, and its other events are ignored`() async throws {
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

    /// Checks the erasure statements on tables too large for sequential scans.
    @Test func `a user's rows are found by an index`() async throws {
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            try await HistoryStoreTests.fillMuch(pool)
            for pending in [
                ErasureStore.notifications(of: Self.erin, limit: 500), ErasureStore.unusedRenderings([UUID(), UUID()]),
                "DELETE FROM rules.member WHERE app = 'test' AND user_id = 'erin-1701'",
                "SELECT EXISTS (SELECT FROM rules.erasure WHERE erased_at >= now())",
            ] as [SQL] {
                let plan = try await HistoryStoreTests.plan(pending, pool)
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

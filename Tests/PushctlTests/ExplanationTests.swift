import Foundation
import Logging
import Postgres
import PushProtocol
import TestSupport
import Testing

@testable import Pushctl

/// Why somebody was pushed, or not, on the tables of rules.
@Suite(.timeLimit(.minutes(2))) struct ExplanationTests {
    private static let migrations = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Services/Rules/Storage/Migrations").path

    private let event = UUID(uuidString: "00000000-0000-5000-8000-000000000001")!
    private let pushed = UUID(uuidString: "00000000-0000-5000-8000-00000000000a")!
    private let capped = UUID(uuidString: "00000000-0000-5000-8000-00000000000b")!
    private let waiting = UUID(uuidString: "00000000-0000-5000-8000-00000000000c")!
    private let noon = Date(timeIntervalSince1970: 1_767_225_600)

    private func withStore(_ body: (ExplanationStore) async throws -> Void) async throws {
        try await TestDatabase.withDatabase { configuration in
            try await PostgresMigrator.migrate(
                schema: "rules", directory: Self.migrations, configuration: configuration,
                logger: Logger(label: "tests.pushctl"))
            try await TestDatabase.withPool(configuration) { pool in
                try await fill(pool)
                try await body(ExplanationStore(pool))
            }
        }
    }

    private func fill(_ pool: PostgresPool) async throws {
        let later = noon.addingTimeInterval(3600)
        for (key, app) in [(event, "portal"), (UUID(), "other")] {
            try await pool.execute(
                """
                INSERT INTO rules.event (key, app, source, id, type, rule_set, arrived_at)
                VALUES (\(key), \(app), '/up', 'e-1', 'chat.written', \(event), \(noon))
                """)
        }
        try await pool.execute(
            """
            INSERT INTO rules.decision (notification, step, event, rule, user_id, decided_at, answer, reason, until)
            VALUES
                (\(pushed), 0, \(event), 'chat', 'ann', \(noon), 'hold', 'quiet-hours', \(later)),
                (\(pushed), 1, \(event), 'chat', 'ann', \(later), 'push', 'wanted', NULL),
                (\(capped), 0, \(event), 'chat', 'bob', \(noon), 'inbox', 'capped', NULL),
                (\(waiting), 0, \(event), 'chat', 'cy', \(noon), 'hold', 'quiet-hours', \(later))
            """)
        try await pool.execute(
            """
            INSERT INTO rules.inbox (notification, app, user_id, saying, at, read_at) VALUES
                (\(pushed), 'portal', 'ann', \(event), \(noon), \(later)), (\(capped), 'portal', 'bob', \(event), \(noon), NULL)
            """)
        try await pool.execute(
            """
            INSERT INTO rules.held (notification, app, user_id, saying, event, since, due_at, quiet_holds, step)
            VALUES (\(waiting), 'portal', 'cy', \(event), \(event), \(noon), \(later), 1, 1)
            """)
        try await pool.execute(
            """
            INSERT INTO rules.outcome (notification, device, disposition, origin, reason, at)
            VALUES (\(pushed), \(event), 'rejected', 'apns', 'BadTopic', \(later))
            """)
    }

    @Test func `the whole story of an event is told`() async throws {
        try await withStore { store in
            let told = try await store.explain(event: "e-1", app: AppID(rawValue: "portal"), user: nil)
            #expect(
                told.flatMap(\.lines) == [
                    "portal  chat.written  e-1  from /up  arrived 2026-01-01T00:00:00.000Z  rules 00000000-0000-5000-8000-000000000001",
                    "  ann  chat  00000000-0000-5000-8000-00000000000a",
                    "    2026-01-01T00:00:00.000Z  hold until 2026-01-01T01:00:00.000Z  (quiet-hours)",
                    "    2026-01-01T01:00:00.000Z  push  (wanted)",
                    "    2026-01-01T01:00:00.000Z  apns  00000000-0000-5000-8000-000000000001  rejected  BadTopic",
                    "    in the inbox, read 2026-01-01T01:00:00.000Z",
                    "  bob  chat  00000000-0000-5000-8000-00000000000b",
                    "    2026-01-01T00:00:00.000Z  inbox  (capped)",
                    "    in the inbox, unread",
                    "  cy  chat  00000000-0000-5000-8000-00000000000c",
                    "    2026-01-01T00:00:00.000Z  hold until 2026-01-01T01:00:00.000Z  (quiet-hours)",
                    "    it waits; it is judged again at 2026-01-01T01:00:00.000Z",
                    "(wanted) nothing speaks against it",
                    "(capped) this person has been pushed as often as the cap allows",
                    "(quiet-hours) it was this person's quiet hours",
                ])
        }
    }

    @Test func `one user's story is told alone, and two apps' events of one id are two`() async throws {
        try await withStore { store in
            let bob = try await store.explain(event: "e-1", app: nil, user: "bob")
            #expect(bob.map(\.app).sorted() == ["other", "portal"])
            #expect(bob.flatMap(\.stories).map(\.user) == ["bob"])
            #expect(try await store.explain(event: "e-2", app: nil, user: nil) == [])
        }
    }
}

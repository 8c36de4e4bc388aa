import Foundation
import Postgres
import PushProtocol
import TestSupport
import Testing

@testable import DecisionLog

/// Why somebody was pushed, or not, on the tables of rules.
@Suite(.timeLimit(.minutes(2))) struct ExplanationTests {
    private let event = UUID(uuidString: "00000000-0000-5000-8000-000000000001")!
    private let pushed = UUID(uuidString: "00000000-0000-5000-8000-00000000000a")!
    private let capped = UUID(uuidString: "00000000-0000-5000-8000-00000000000b")!
    private let waiting = UUID(uuidString: "00000000-0000-5000-8000-00000000000c")!
    private let noon = Date(timeIntervalSince1970: 1_767_225_600)

    private func withStore(_ body: (ExplanationStore, PostgresPool) async throws -> Void) async throws {
        try await TestSchema.rules.withPool { pool in
            try await fill(pool)
            try await body(ExplanationStore(pool), pool)
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
        try await pool.execute("INSERT INTO rules.receipt VALUES (\(capped), 'opened', \(later))")
    }

    @Test func `the whole story of an event is told`() async throws {
        try await withStore { store, pool in
            let told = try await store.explain(.init(event: "e-1", app: AppID(rawValue: "portal")))
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
                    "    opened by this person 2026-01-01T01:00:00.000Z",
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
        try await withStore { store, pool in
            let bob = try await store.explain(.init(event: "e-1", user: "bob"))
            #expect(bob.map(\.app).sorted() == ["other", "portal"])
            #expect(bob.flatMap(\.stories).map(\.user) == ["bob"])
            #expect(try await store.explain(.init(event: "e-2")) == [])
        }
    }

    @Test func `an event to very many is told page by page, everybody once`() async throws {
        try await withStore { store, pool in
            let many = UUID()
            try await pool.execute(
                """
                INSERT INTO rules.event (key, app, source, id, type, rule_set, arrived_at)
                VALUES (\(many), 'portal', '/up', 'e-2', 'chat.written', \(many), \(noon))
                """)
            // Two rules for everybody; every third was held first. Names that languages and bytes order differently.
            try await pool.execute(
                """
                INSERT INTO rules.decision (notification, step, event, rule, user_id, decided_at, answer, reason)
                SELECT md5(rule || number)::uuid, step, \(many), rule, (ARRAY['a', 'B', 'ä', '_'])[1 + number % 4] || number,
                    \(noon), CASE WHEN step = 0 AND number % 3 = 0 THEN 'hold' ELSE 'push' END, 'wanted'
                FROM generate_series(1, 300) AS number, unnest(ARRAY['chat', 'shout']) AS rule, generate_series(0, 1) AS step
                WHERE step = 0 OR number % 3 = 0
                """)
            var question = ExplanationStore.Question(event: "e-2", app: AppID(rawValue: "portal"), limit: 70)
            var stories: [Explanation.Story] = []
            var pages = 0
            while let page = try await store.explain(question).first {
                stories += page.stories
                pages += 1
                #expect(page.stories.count <= 70)
                question.after = page.next
                guard page.next != nil else { break }
            }
            #expect(pages == 9)
            #expect(stories.count == 600 && Set(stories.map(\.notification)).count == 600)
            let order = stories.map { Array("\($0.user) \($0.rule)".utf8) }
            #expect(zip(order, order.dropFirst()).allSatisfy { $0.lexicographicallyPrecedes($1) })
            #expect(stories.allSatisfy { $0.decisions.count == (Int($0.user.dropFirst())! % 3 == 0 ? 2 : 1) })

            // A place in another event, another app's, and one that is gone.
            question.after = pushed
            #expect(try await store.explain(question) == [])
            question.after = stories[0].notification
            question.app = AppID(rawValue: "other")
            #expect(try await store.explain(question) == [])
        }
    }

    @Test func `of many events of one id the latest are told`() async throws {
        try await withStore { store, pool in
            try await pool.execute(
                """
                INSERT INTO rules.event (key, app, source, id, type, rule_set, arrived_at)
                SELECT gen_random_uuid(), 'portal', '/' || number, 'e-1', 'chat.written', gen_random_uuid(),
                    \(noon) + number * interval '1 second'
                FROM generate_series(1, 20) AS number
                """)
            let told = try await store.explain(.init(event: "e-1"))
            #expect(told.map(\.source) == (11...20).reversed().map { "/\($0)" })
            #expect(told.allSatisfy { $0.stories.isEmpty && $0.next == nil })
            #expect(told[0].told == ["  nobody: no rule matches, or it names nobody who is left to tell"])
        }
    }
}

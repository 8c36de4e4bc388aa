import Foundation
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import DecisionLog

/// Explanations read from the tables of rules.
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

    private func insertEvent(
        _ key: UUID, in app: String, _ id: String, ruleSet: UUID, _ pool: PostgresPool
    ) async throws {
        try await pool.execute(
            """
            INSERT INTO rules.event (key, app, source, id, type, rule_set, arrived_at)
            VALUES (\(key), \(app), '/up', \(id), 'chat.written', \(ruleSet), \(noon))
            """)
    }

    private func fill(_ pool: PostgresPool) async throws {
        let later = noon.addingTimeInterval(3600)
        for (key, app) in [(event, "portal"), (UUID(), "other")] {
            try await insertEvent(key, in: app, "e-1", ruleSet: event, pool)
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

    @Test func `an explanation lists decisions, outcomes, inbox and receipts of each user`() async throws {
        try await withStore { store, pool in
            let explanations = try await store.explain(.init(event: "e-1", app: AppID(rawValue: "portal")))
            #expect(
                explanations.flatMap(\.lines) == [
                    "portal  chat.written  e-1  from /up  arrived 2026-01-01T00:00:00.000Z  rules 00000000-0000-5000-8000-000000000001",
                    "  ann  chat  00000000-0000-5000-8000-00000000000a",
                    "    2026-01-01T00:00:00.000Z  hold until 2026-01-01T01:00:00.000Z  (quiet-hours)",
                    "    2026-01-01T01:00:00.000Z  push  (wanted)",
                    "    2026-01-01T01:00:00.000Z  apns  00000000-0000-5000-8000-000000000001  rejected  BadTopic",
                    "    in the inbox, read 2026-01-01T01:00:00.000Z",
                    "  bob  chat  00000000-0000-5000-8000-00000000000b",
                    "    2026-01-01T00:00:00.000Z  inbox  (capped)",
                    "    in the inbox, unread",
                    "    opened by the user 2026-01-01T01:00:00.000Z",
                    "  cy  chat  00000000-0000-5000-8000-00000000000c",
                    "    2026-01-01T00:00:00.000Z  hold until 2026-01-01T01:00:00.000Z  (quiet-hours)",
                    "    held; decided again at 2026-01-01T01:00:00.000Z",
                    "(wanted) no preference or limit prevents it",
                    "(capped) the user's frequency cap was reached",
                    "(quiet-hours) the user's quiet hours were in effect",
                ])
        }
    }

    @Test func `a query can be limited to one user, and returns events of all apps with the id`() async throws {
        try await withStore { store, pool in
            let bob = try await store.explain(.init(event: "e-1", user: "bob"))
            #expect(bob.map(\.app).sorted() == ["other", "portal"])
            #expect(bob.flatMap(\.traces).map(\.user) == ["bob"])
            #expect(try await store.explain(.init(event: "e-2")) == [])
        }
    }

    @Test func `pages of an event with many users contain each notification once`() async throws {
        try await withStore { store, pool in
            let many = UUID()
            try await insertEvent(many, in: "portal", "e-2", ruleSet: many, pool)
            // Two rules for each user; every third notification was held first. Locales sort the names unlike bytes.
            try await pool.execute(
                """
                INSERT INTO rules.decision (notification, step, event, rule, user_id, decided_at, answer, reason)
                SELECT md5(rule || number)::uuid, step, \(many), rule, (ARRAY['a', 'B', 'ä', '_'])[1 + number % 4] || number,
                    \(noon), CASE WHEN step = 0 AND number % 3 = 0 THEN 'hold' ELSE 'push' END, 'wanted'
                FROM generate_series(1, 300) AS number, unnest(ARRAY['chat', 'shout']) AS rule, generate_series(0, 1) AS step
                WHERE step = 0 OR number % 3 = 0
                """)
            var question = ExplanationStore.ExplanationQuery(event: "e-2", app: AppID(rawValue: "portal"), limit: 70)
            var traces: [Explanation.NotificationTrace] = []
            var pages = 0
            while let page = try await store.explain(question).first {
                traces += page.traces
                pages += 1
                #expect(page.traces.count <= 70)
                question.after = page.next
                guard page.next != nil else { break }
            }
            #expect(pages == 9)
            #expect(traces.count == 600 && Set(traces.map(\.notification)).count == 600)
            let order = traces.map { Array("\($0.user) \($0.rule)".utf8) }
            #expect(zip(order, order.dropFirst()).allSatisfy { $0.lexicographicallyPrecedes($1) })
            #expect(traces.allSatisfy { $0.decisions.count == (Int($0.user.dropFirst())! % 3 == 0 ? 2 : 1) })

            // Page starts in another event and in another app's event.
            question.after = pushed
            #expect(try await store.explain(question) == [])
            question.after = traces[0].notification
            question.app = AppID(rawValue: "other")
            #expect(try await store.explain(question) == [])
        }
    }

    @Test func `an event with more notifications than a page is complete when all pushes have outcomes`() async throws {
        try await withStore { store, pool in
            let many = UUID()
            try await insertEvent(many, in: "portal", "e-2", ruleSet: many, pool)
            // Each was held first. Every third is in the inbox only, and one addresses an audience.
            try await pool.execute(
                """
                INSERT INTO rules.decision (notification, step, event, rule, user_id, decided_at, answer, reason)
                SELECT md5(number::text)::uuid, step, \(many), 'chat', number, \(noon),
                    CASE WHEN step = 0 THEN 'hold' WHEN number % 3 = 0 THEN 'inbox' ELSE 'push' END,
                    CASE WHEN number = 1 THEN 'audience' ELSE 'wanted' END
                FROM generate_series(1, 300) AS number, generate_series(0, 1) AS step
                """)
            let question = ExplanationStore.ExplanationQuery(event: "e-2", source: "/up", limit: 50)
            let open = try #require(try await store.explain(question).first)
            #expect(open.totals == Explanation.Totals(withoutOutcome: 199, outcomes: 0) && !open.isComplete)
            func answer(_ numbers: String) async throws {
                try await pool.execute(
                    """
                    INSERT INTO rules.outcome (notification, device, disposition, origin, reason, at)
                    SELECT md5(number::text)::uuid, gen_random_uuid(), 'accepted', 'apns', NULL, \(noon)
                    FROM generate_series(1, 300) AS number WHERE (number::text COLLATE "C" < \(numbers))
                    """)
            }
            try await answer("2")
            #expect(try await store.explain(question).first?.isComplete == false)
            try await answer("a")
            let all = try #require(try await store.explain(question).first)
            #expect(all.totals?.withoutOutcome == 0 && all.isComplete && all.mayGetOutcomes)
            let last = ExplanationStore.ExplanationQuery(event: "e-2", after: all.next, limit: 50)
            #expect(try await store.explain(last).first?.totals == nil)
        }
    }

    @Test func `of many events with one id the latest are returned`() async throws {
        try await withStore { store, pool in
            try await pool.execute(
                """
                INSERT INTO rules.event (key, app, source, id, type, rule_set, arrived_at)
                SELECT gen_random_uuid(), 'portal', '/' || number, 'e-1', 'chat.written', gen_random_uuid(),
                    \(noon) + number * interval '1 second'
                FROM generate_series(1, 20) AS number
                """)
            let explanations = try await store.explain(.init(event: "e-1"))
            #expect(explanations.map(\.source) == (11...20).reversed().map { "/\($0)" })
            #expect(explanations.allSatisfy { $0.traces.isEmpty && $0.next == nil })
            let third = try await store.explain(.init(event: "e-1", source: "/3"))
            #expect(third.map(\.source) == ["/3"])
            #expect(explanations[0].notificationLines == ["  no users: no rule matches, or no recipient is left"])
        }
    }

    @Test func `a user's history has the last decision of each notification, results and waiting ones`() async throws {
        try await withStore { _, pool in
            let store = UserHistoryStore(pool)
            let later = noon.addingTimeInterval(3600)
            let portal = AppID(rawValue: "portal")!
            let ann = try await store.history(of: UserID(rawValue: "ann")!, in: portal, limit: 50)
            #expect(
                ann
                    == UserHistory(
                        rows: [
                            .init(
                                notification: pushed, event: "e-1", type: "chat.written", rule: "chat",
                                decidedAt: later,
                                answer: "push", reason: "wanted", until: nil,
                                results: [.init(origin: "apns", disposition: "rejected", reason: "BadTopic", count: 1)])
                        ], waiting: []))
            let cy = try await store.history(of: UserID(rawValue: "cy")!, in: portal, limit: 50)
            #expect(
                cy.waiting == [.init(notification: waiting, event: "e-1", rule: "chat", kind: "held", dueAt: later)])
            #expect(cy.rows.map(\.until) == [later])
            let other = try await store.history(of: UserID(rawValue: "ann")!, in: AppID(rawValue: "other")!, limit: 50)
            #expect(other.rows.isEmpty && other.waiting.isEmpty)
        }
    }
}

import DecisionLog
import Foundation
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// The worker that stops harmful variants, with the service's own tables.
@Suite(.timeLimit(.minutes(3))) struct VariantGuardTests {
    private static let app = AppID(rawValue: "test")!
    private static let now = moment("2026-01-20T12:00:00Z")

    private static let rules = """
        app: test
        types: { tips: { about: Tips } }
        events: { tip: { examples: [{ users: [1] }] } }
        rules:
          tip:
            when: { event: tip }
            to: { users: users }
            say: { title: A tip }
            policy: { type: tips }
            variants:
              plain: { share: 40% }
              loud: { share: 30%, say: { title: A TIP } }
              short: { share: 20%, say: { title: Tip } }
              none: { share: 10%, hold-out: true }
        """

    /// Writes one decision for each of 500 users of a variant, of whom `off` have switched the type off since.
    private static func add(_ pool: PostgresPool, _ rule: String, off: Int, answer: String, reason: String) async throws
    {
        try await pool.execute(
            """
            WITH new AS (
                SELECT n, gen_random_uuid() AS event FROM generate_series(1, 500) AS n
            ), events AS (
                INSERT INTO rules.event (key, app, source, id, type, rule_set, arrived_at)
                SELECT event, 'test', '/up', event::text, 'tip', event, \((now - .seconds(3600)).date) FROM new
            ), people AS (
                INSERT INTO rules.person (app, user_id, settings)
                SELECT 'test', \(rule) || n, '{"types": {"tips": false}}'::jsonb FROM new WHERE n <= \(off)
            )
            INSERT INTO rules.decision (notification, event, rule, user_id, decided_at, answer, reason)
            SELECT gen_random_uuid(), event, \(rule), \(rule) || n, \((now - .seconds(3600)).date), \(answer), \(reason)
            FROM new
            """)
    }

    private static func worker(_ pool: PostgresPool) throws -> VariantGuard {
        VariantGuard(
            store: VariantStore(pool), currentRules: CurrentRules(RuleSets([try parse(rules)])), now: { now },
            logger: .silent)
    }

    @Test func `a harmful variant is stopped in all processes, and others go on`() async throws {
        try await RulesDatabase.withPool { pool in
            for (rule, off) in [("tip-plain", 5), ("tip-loud", 100), ("tip-short", 8)] {
                try await Self.add(pool, rule, off: off, answer: "push", reason: "wanted")
            }
            try await Self.add(pool, "tip-none", off: 200, answer: "drop", reason: "hold-out")
            let (one, other) = (try Self.worker(pool), try Self.worker(pool))
            async let first: Void = one.compare()
            async let second: Void = other.compare()
            _ = try await (first, second)
            let stops = ["tip-loud": Self.now + VariantGuard.notice]
            #expect(one.currentRules.ruleSets[Self.app]?.stops == stops)
            let late = try Self.worker(pool)
            try await late.readStops()
            #expect(late.currentRules.ruleSets[Self.app]?.stops == stops)
            // A later comparison changes nothing.
            try await late.compare()
            #expect(late.currentRules.ruleSets[Self.app]?.stops == stops)
            let report = try await VariantStore(pool).report(
                of: ComparedRule(
                    name: "tip", type: "tips",
                    variants: ["plain", "loud"].map { ($0, "tip-\($0)", 50, false) }), app: Self.app,
                from: (Self.now - .seconds(86_400)).date, until: Self.now.date)
            #expect(report.rows.map(\.stoppedAt) == [nil, stops["tip-loud"]?.date])
        }
    }

    @Test func `without harm nothing is stopped`() async throws {
        try await RulesDatabase.withPool { pool in
            for rule in ["tip-plain", "tip-loud", "tip-short"] {
                try await Self.add(pool, rule, off: 10, answer: "push", reason: "wanted")
            }
            let worker = try Self.worker(pool)
            try await worker.compare()
            #expect(worker.currentRules.ruleSets[Self.app]?.stops.isEmpty == true)
        }
    }
}

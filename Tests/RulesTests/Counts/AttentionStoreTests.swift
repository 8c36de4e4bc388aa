import DecisionLog
import Foundation
import Postgres
import PushProtocol
import Testing

@testable import RuleLanguage
@testable import Rules

/// Notifications of users on a day, from the service's own tables.
@Suite(.timeLimit(.minutes(3))) struct AttentionStoreTests {
    private static let app = AppID(rawValue: "test")!

    private static func add(
        _ pool: PostgresPool, _ rule: String, _ user: String, _ time: String, answer: String = "push",
        app: AppID = app
    ) async throws {
        let at = moment(time).date
        try await pool.execute(
            """
            WITH event AS (
                INSERT INTO rules.event (key, app, source, id, type, rule_set, arrived_at)
                SELECT id, \(app.rawValue), '/up', id::text, 't', id, \(at) FROM gen_random_uuid() AS id RETURNING key
            )
            INSERT INTO rules.decision (notification, event, rule, user_id, decided_at, answer, reason)
            SELECT gen_random_uuid(), key, \(rule), \(user), \(at), \(answer), 'wanted' FROM event
            """)
    }

    @Test func `pushes count by user, rule and day of the app's zone`() async throws {
        try await RulesDatabase.withPool { pool in
            // In Berlin these are three pushes on the 20th and one on the 21st; in UTC, four on the 20th.
            for time in ["2026-01-20T08:00:00Z", "2026-01-20T12:00:00Z", "2026-01-20T22:59:00Z"] {
                try await Self.add(pool, "order", "u1", time)
            }
            try await Self.add(pool, "tip", "u1", "2026-01-20T23:01:00Z", answer: "push-quietly")
            try await Self.add(pool, "tip", "u2", "2026-01-20T12:00:00Z")
            // Not noticed, not pushed, another app, and outside of the window.
            try await Self.add(pool, "silent", "u2", "2026-01-20T12:00:00Z")
            try await Self.add(pool, "tip", "u2", "2026-01-20T12:00:00Z", answer: "inbox")
            try await Self.add(pool, "tip", "u2", "2026-01-20T12:00:00Z", app: AppID(rawValue: "second")!)
            try await Self.add(pool, "tip", "u2", "2026-01-25T12:00:00Z")
            func report(_ zone: String, _ promise: Int?) async throws -> AttentionReport {
                try await AttentionStore(pool).report(
                    of: ["order", "tip"], app: Self.app, from: moment("2026-01-20T00:00:00Z").date,
                    until: moment("2026-01-22T00:00:00Z").date, zone: zone, promise: promise)
            }
            let berlin = try await report("Europe/Berlin", 2)
            #expect(
                berlin.days
                    == .init(
                        notifications: 5, users: 2, median: 1, ninety: 3, ninetyNine: 3, maximum: 3, usersOver: 1,
                        daysOver: 1))
            #expect(
                berlin.rules == [
                    .init(name: "order", notifications: 3, users: 1, over: 3),
                    .init(name: "tip", notifications: 2, users: 2, over: 0),
                ])
            #expect(
                berlin.users == [
                    .init(id: "u1", notifications: 4, most: 3, daysOver: 1),
                    .init(id: "u2", notifications: 1, most: 1, daysOver: 0),
                ])
            #expect(try await report("UTC", nil).days.maximum == 4)
            #expect(try await report("UTC", nil).days.usersOver == 0)
        }
    }

    @Test func `a window without decisions is empty`() async throws {
        try await RulesDatabase.withPool { pool in
            let report = try await AttentionStore(pool).report(
                of: ["tip"], app: Self.app, from: moment("2026-01-20T00:00:00Z").date,
                until: moment("2026-01-22T00:00:00Z").date, zone: "UTC", promise: 1)
            #expect(report.days == .init() && report.rules.isEmpty && report.users.isEmpty)
        }
    }

    @Test func `users notice the rules with a text, and not silent ones`() throws {
        let set = try parse(
            """
            app: test
            daily-promise: 6
            events: { e: { examples: [{ users: [1] }] } }
            rules:
              told: { when: { event: e }, to: { users: users }, say: { title: Hi } }
              untold: { when: { event: e }, to: { users: users }, say: { data: { a: b } }, how: { as: silent } }
            """)
        #expect(set.defaults.dailyPromise == 6)
        #expect(set.visibleRules.contains("told") && set.visibleRules.contains("direct"))
        #expect(!set.visibleRules.contains("untold") && !set.visibleRules.contains("direct-silent"))
    }
}

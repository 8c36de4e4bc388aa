import FoundationEssentials
import Logging
import Messaging
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// The result of one app as text, so that two runs can be compared.
struct ScenarioResult: Equatable {
    /// `moment event rule user answer until reason`, in any order.
    var decisions: [String] = []
    /// `moment rule user badge lane expiration content`, in any order.
    var pushes: [String] = []
    /// The number of unread items by user.
    var unread: [String: Int] = [:]

    mutating func sort() {
        decisions.sort()
        pushes.sort()
    }

    mutating func push(_ notification: PushProtocol.Notification, at moment: Timestamp) throws {
        let content = String(decoding: try WireCoding.encode(notification.content), as: UTF8.self)
        for recipient in notification.recipients {
            let badge = recipient.badge.map(String.init) ?? "-"
            let expiration = notification.expiresAt.map { "\($0.milliseconds)" } ?? "-"
            pushes.append(
                "\(RFC3339.string(from: moment.date)) \(notification.rule) \(recipient.user) \(badge) \(notification.lane.rawValue) \(expiration) \(content)"
            )
        }
    }
}

/// Runs scenarios of many apps on the service's own stores, with a clock that advances to the next due time.
struct ServedScenarios {
    let pool: PostgresPool
    let scenarios: [RandomScenario]
    private let ruleSets: RuleSets
    private let clock = DecisionStoreTests.Clock(RandomScenario.start)
    private var results: [String: ScenarioResult] = [:]
    /// A repeated event without an outcome is published again under the same ids.
    private var published: Set<UUID> = []
    private let recordedApps: @Sendable () -> Set<AppID>

    /// - Parameter isRecorded: whether the decisions are recorded.
    init(_ scenarios: [RandomScenario], _ pool: PostgresPool, isRecorded: Bool = false) {
        self.scenarios = scenarios
        self.pool = pool
        let apps = isRecorded ? Set(scenarios.map(\.rules.app)) : []
        recordedApps = { apps }
        ruleSets = RuleSets(scenarios.map(\.rules))
    }

    /// - Returns: the result of each app.
    mutating func run(until end: Timestamp) async throws -> [String: ScenarioResult] {
        try await settle()
        let clock = clock
        let handler = EventHandler(
            currentRules: CurrentRules(ruleSets),
            store: DecisionStore(pool: pool, spread: .zero, recordedApps: recordedApps),
            bulkThrottle: BulkThrottle(pauseFactor: 1),
            now: { clock.now })
        let moments = Dictionary(grouping: scenarios.flatMap(\.occurrences), by: \.at)
        for moment in moments.keys.sorted() {
            try await advance(to: moment)
            let batch = (moments[moment] ?? []).map { one in
                Delivery(
                    inbound: delivered("", routingKey: "\(one.event.app).\(one.event.type)").at(moment),
                    message: one.event)
            }
            for verdict in try await handler.handle(batch) { try publish(verdict.outbound) }
        }
        try await advance(to: end)
        try await collect()
        return results
    }

    private func settle() async throws {
        for scenario in scenarios {
            for (user, settings) in scenario.people {
                let text = String(decoding: try WireCoding.encode(settings), as: UTF8.self)
                try await pool.execute(
                    "INSERT INTO rules.person (app, user_id, settings) VALUES (\(scenario.app), \(user), \(text)::jsonb)"
                )
            }
        }
    }

    /// Runs all due work in the order of its time.
    private mutating func advance(to moment: Timestamp) async throws {
        var rounds = 0
        while let next = try await nextDue(), next <= moment {
            rounds = next == clock.now ? rounds + 1 : 0
            try #require(rounds < 100, "something stays due at \(RFC3339.string(from: next.date))")
            clock.set(next)
            let closed = try await DigestStore(pool: pool, recordedApps: recordedApps).close(by: ruleSets, now: next)
            #expect(closed.failures.isEmpty)
            let held = HeldStore(pool: pool, spread: .zero, recordedApps: recordedApps)
            let (releases, _) = try await held.release(by: ruleSets, most: 10_000, now: next)
            for parcel in ScheduledSendWorker.Parcel.parcels(releases) {
                try results[parcel.notification.app.rawValue, default: ScenarioResult()]
                    .push(parcel.notification, at: next)
            }
            try await held.forget(releases.map(\.recipient.notification))
            try await correct(next)
        }
        clock.set(moment)
    }

    private mutating func correct(_ now: Timestamp) async throws {
        let store = BadgeStore(pool: pool)
        let taken = try await store.take(now: now)
        for one in taken {
            let use = ruleSets.ruleSets[one.person.app]?.badgeUse ?? .none
            guard let badge = use.correction(unread: one.unread).map(Content.badge) else { continue }
            let recipient = Notification.Recipient(user: one.person.user, notification: UUID(), badge: badge)
            try results[one.person.app.rawValue, default: ScenarioResult()].push(
                BadgeCorrection.notification(to: [recipient], of: one.person.app, now: now), at: now)
        }
        try await store.forget(taken)
    }

    private func nextDue() async throws -> Timestamp? {
        let row = try #require(
            try await pool.query(
                """
                SELECT greatest(least(
                    (SELECT min(due_at) FROM rules.held), (SELECT min(close_at) FROM rules.digest),
                    (SELECT min(due_at) FROM rules.badge)
                ), \(clock.now.date))
                WHERE EXISTS (SELECT FROM rules.held) OR EXISTS (SELECT FROM rules.badge)
                    OR EXISTS (SELECT FROM rules.digest WHERE close_at IS NOT NULL)
                UNION ALL SELECT NULL
                """
            ).first)
        return try row.decode(Date?.self, at: 0).map(Timestamp.init)
    }

    private mutating func publish(_ outbound: [Outbound]) throws {
        for message in outbound {
            var notification = try Notification.decode(wireBody: message.body)
            notification.recipients.removeAll { !published.insert($0.notification).inserted }
            try results[notification.app.rawValue, default: ScenarioResult()].push(notification, at: clock.now)
        }
    }

    private mutating func collect() async throws {
        for row in try await pool.query(
            """
            SELECT event.app, event.id, decision.rule, user_id, decided_at, answer, until, reason
            FROM rules.decision JOIN rules.event ON event.key = decision.event
            """)
        {
            let until = try row.decode(Date?.self, at: 6).map { " until \(RFC3339.string(from: $0))" } ?? ""
            let moment = RFC3339.string(from: try row.decode(Date.self, at: 4))
            let (app, id) = (try row.decode(String.self, at: 0), try row.decode(String.self, at: 1))
            let (rule, user) = (try row.decode(String.self, at: 2), try row.decode(String.self, at: 3))
            let (answer, reason) = (try row.decode(String.self, at: 5), try row.decode(String.self, at: 7))
            results[app, default: ScenarioResult()].decisions.append(
                "\(moment) \(id) \(rule) \(user) \(answer)\(until) (\(reason))")
        }
        for row in try await pool.query(
            "SELECT app, user_id, count(*) FROM rules.inbox WHERE read_at IS NULL GROUP BY app, user_id")
        {
            results[try row.decode(String.self, at: 0), default: ScenarioResult()]
                .unread[try row.decode(String.self, at: 1)] = try row.decode(Int.self, at: 2)
        }
    }
}

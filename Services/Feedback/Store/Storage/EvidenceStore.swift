package import Postgres
package import PushProtocol
import FoundationEssentials

/// Stores findings as evidence, and the senders' route health reports.
package struct EvidenceStore: Sendable {
    private let database: PostgresPool
    private let settlingTime: Duration
    private let now: @Sendable () async throws -> Timestamp

    /// - Parameters:
    ///   - settlingTime: The time from storing evidence to its evaluation.
    ///   - now: The time shared by all processes (``DatabaseClock``).
    package init(
        _ database: PostgresPool, settlingTime: Duration, now: @escaping @Sendable () async throws -> Timestamp
    ) {
        self.database = database
        self.settlingTime = settlingTime
        self.now = now
    }

    /// Stores findings and route health in one transaction.
    ///
    /// Ignores findings that are already stored and findings about erased registrations.
    package func record(_ batches: [Outcomes]) async throws {
        let rows = Self.rows(of: batches)
        let pulses = Self.pulses(of: batches)
        guard !rows.isEmpty || !pulses.isEmpty else { return }
        let due = try await (now() + settlingTime).date
        try await database.transaction { transaction in
            try await transaction.execute(ErasureStore.sharedLock)
            try await transaction.execute(Self.statement(rows, pulses, due: due))
        }
    }

    private static func statement(
        _ rows: [(statement: TokenStatement, trace: Trace)], _ pulses: [(route: FeedbackRoute, pulse: RouteHealth)],
        due: Date
    ) -> SQL {
        let statements = rows.map(\.statement)
        return """
            WITH pulse AS (
                INSERT INTO feedback.pulse AS p
                    (app, provider, environment, minute, sender, answered, accepted_at, storm_since, storm_until)
                SELECT * FROM unnest(
                    \(pulses.map(\.route.app.rawValue))::text[], \(pulses.map(\.route.origin.rawValue))::text[],
                    \(pulses.map(\.route.environmentLabel))::text[], \(pulses.map(\.pulse.minute.date))::timestamptz[],
                    \(pulses.map(\.pulse.sender))::uuid[], \(pulses.map(\.pulse.answered))::bigint[],
                    \(pulses.map { $0.pulse.acceptedAt?.date })::timestamptz[],
                    \(pulses.map { $0.pulse.badTokenSpike?.since.date })::timestamptz[],
                    \(pulses.map { $0.pulse.badTokenSpike?.until.date })::timestamptz[])
                ON CONFLICT (app, provider, environment, minute, sender) DO UPDATE SET
                    answered = greatest(p.answered, excluded.answered),
                    accepted_at = greatest(p.accepted_at, excluded.accepted_at),
                    storm_since = least(p.storm_since, excluded.storm_since),
                    storm_until = greatest(p.storm_until, excluded.storm_until)
            )
            INSERT INTO feedback.evidence
                (notification_id, device_id, app, provider, environment, finding, reason, gone_since, registered_at,
                observed_at, decision, due_at, cause, correlation, traceparent, owner)
            SELECT n, d, a, p, e, f, r, g, t, o, s, CASE WHEN s = 'waiting' THEN \(due)::timestamptz END, c, k, w, u
            FROM unnest(
                \(statements.map(\.notification))::uuid[], \(statements.map(\.device))::uuid[],
                \(statements.map(\.route.app.rawValue))::text[], \(statements.map(\.route.origin.rawValue))::text[],
                \(statements.map(\.route.environmentLabel))::text[], \(statements.map(\.verdict.rawValue))::text[],
                \(statements.map { $0.reason.replacing("\0", with: "") })::text[],
                \(statements.map { $0.goneSince?.date })::timestamptz[],
                \(statements.map { $0.registeredAt?.date })::timestamptz[],
                \(statements.map(\.observedAt.date))::timestamptz[], \(statements.map(\.initialState.rawValue))::text[],
                \(rows.map(\.trace.id))::uuid[], \(rows.map { $0.trace.correlation.replacing("\0", with: "") })::text[],
                \(rows.map { $0.trace.traceparent?.replacing("\0", with: "") })::text[],
                \(statements.map { $0.owner?.rawValue })::bigint[]
            ) AS new (n, d, a, p, e, f, r, g, t, o, s, c, k, w, u)
            WHERE NOT EXISTS (
                SELECT FROM feedback.erasure x
                WHERE x.device_id = d AND coalesce(t <= x.revokes, o <= x.erased_at))
            ON CONFLICT (notification_id, device_id) DO NOTHING
            """
    }

    /// The findings, sorted by key so that two batches cannot deadlock. Of two findings for one key, the first counts.
    private static func rows(of batches: [Outcomes]) -> [(statement: TokenStatement, trace: Trace)] {
        var rows: [String: (statement: TokenStatement, trace: Trace)] = [:]
        for batch in batches {
            for statement in batch.statements {
                let key = statement.notification.uuidString + statement.device.uuidString
                if rows[key] == nil { rows[key] = (statement, batch.trace) }
            }
        }
        return rows.sorted { $0.key < $1.key }.map(\.value)
    }

    private struct PulseKey: Hashable {
        let route: FeedbackRoute
        let minute: Timestamp
        let sender: UUID
    }

    private static func pulses(of batches: [Outcomes]) -> [(route: FeedbackRoute, pulse: RouteHealth)] {
        var latest: [PulseKey: RouteHealth] = [:]
        for batch in batches {
            guard let pulse = batch.routeHealth else { continue }
            let route = FeedbackRoute(app: batch.app, origin: batch.origin, environment: batch.environment)
            let key = PulseKey(route: route, minute: pulse.minute, sender: pulse.sender)
            latest[key] = latest[key]?.merged(with: pulse) ?? pulse
        }
        return latest.sorted { a, b in
            (a.key.route, a.key.minute, a.key.sender.uuidString) < (b.key.route, b.key.minute, b.key.sender.uuidString)
        }
        .map { ($0.key.route, $0.value) }
    }
}

extension RouteHealth {
    /// Merges two reports of a sender about the same minute: the larger count, the latest times, the widest spike.
    fileprivate func merged(with other: RouteHealth) -> RouteHealth {
        var merged = self
        merged.answered = max(answered, other.answered)
        merged.acceptedAt = [acceptedAt, other.acceptedAt].compactMap { $0 }.max()
        let reportedSpikes = [badTokenSpike, other.badTokenSpike].compactMap { $0 }
        if let since = reportedSpikes.map(\.since).min(), let until = reportedSpikes.map(\.until).max() {
            merged.badTokenSpike = BadTokenSpike(since: since, until: until)
        }
        return merged
    }
}

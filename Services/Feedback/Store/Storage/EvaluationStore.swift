package import Postgres
package import PushProtocol
import FoundationEssentials

/// Reads and writes evidence for ``EvidenceEvaluator`` and ``CommandPublisher``.
///
/// Each evaluation of a route is one transaction that locks the route's guard, so that several processes agree.
package struct EvaluationStore: Sendable {
    /// The maximum number of rows in an evaluation and in a claim.
    package static let batch = 500

    private let database: PostgresPool
    private let rule: GuardRule
    private let suspicion: SuspicionRule

    package init(_ database: PostgresPool, guardRule: GuardRule, suspicionRule: SuspicionRule) {
        self.database = database
        rule = guardRule
        suspicion = suspicionRule
    }

    /// Returns the routes with waiting evidence, a tripped guard or a newly reported spike.
    ///
    /// Marks evidence as dead if its route cannot be decoded.
    package func routes() async throws(PostgresError) -> (routes: [FeedbackRoute], dead: [DeadEvidence]) {
        let rows = try await database.query(
            """
            SELECT app, provider, environment FROM feedback.evidence
            WHERE decision = 'waiting' AND dead_at IS NULL
            UNION
            SELECT app, provider, environment FROM feedback.guard WHERE tripped_at IS NOT NULL
            UNION
            SELECT app, provider, environment FROM feedback.pulse p
            WHERE storm_until IS NOT NULL AND NOT EXISTS (
                SELECT FROM feedback.guard g
                WHERE g.app = p.app AND g.provider = p.provider AND g.environment = p.environment
                    AND g.told_until >= p.storm_until)
            """)
        var routes: [FeedbackRoute] = []
        var dead: [DeadEvidence] = []
        for row in rows {
            do throws(PostgresError) {
                routes.append(try FeedbackRoute(row))
            } catch {
                dead += try await markDead(routeOf: row, error)
            }
        }
        return (routes.sorted(), dead)
    }

    private func markDead(routeOf row: PostgresRow, _ error: PostgresError) async throws(PostgresError)
        -> [DeadEvidence]
    {
        let rows = try await database.query(
            """
            UPDATE feedback.evidence SET dead_at = clock_timestamp(), dead_reason = \(DeadEvidence.unreadable)
            WHERE app = \(try row.decode(String.self, at: "app"))
                AND provider = \(try row.decode(String.self, at: "provider"))
                AND environment IS NOT DISTINCT FROM \(try row.decode(String?.self, at: "environment"))::text
                AND decision = 'waiting' AND dead_at IS NULL
            RETURNING notification_id, device_id, app
            """)
        return try rows.map { row throws(PostgresError) in try DeadEvidence(row, error) }
    }

    /// Evaluates the evidence due on `route` at `now`. While the guard is tripped, quarantines all waiting evidence.
    ///
    /// - Returns: `nil` if another process has locked the route.
    package func evaluate(_ route: FeedbackRoute, now: Timestamp) async throws -> RouteReport? {
        try await database.execute(
            """
            INSERT INTO feedback.guard (app, provider, environment)
            VALUES (\(route.app.rawValue), \(route.origin.rawValue), \(route.environmentLabel)) ON CONFLICT DO NOTHING
            """)
        return try await database.transaction(isolation: .repeatableRead) { transaction in
            guard let before = try await transaction.guardState(of: route) else { return nil }
            let minutes = try await transaction.minutes(of: route)
            var spike = rule.spike(in: minutes, normalShare: 0)
            if spike != nil {
                let day = try await transaction.dayBefore(minutes.map(\.minute).min() ?? now, on: route)
                spike = rule.spike(
                    in: minutes, normalShare: rule.normalShare(believed: day.believed, answered: day.answered))
            }
            let reportedUntil = try await transaction.newlyReportedSpike(of: route)
            let after = rule.next(before, isSpike: spike != nil || reportedUntil != nil, now: now)
            var report = RouteReport(route: route, guardBefore: before, guardAfter: after, spike: spike)
            if after != before || reportedUntil != nil {
                try await transaction.set(after, was: before, spike, reportedUntil: reportedUntil, on: route)
            }
            if case .tripped = after {
                report.decided["quarantined"] = try await transaction.quarantineEverything(on: route, now: now)
            } else {
                let (due, dead) = try await transaction.due(on: route, now: now)
                let acceptedAt = due.isEmpty ? nil : try await transaction.lastAcceptance(on: route)
                let reportedSpikes = due.isEmpty ? [] : try await transaction.reportedSpikes(on: route)
                let evaluated = due.map {
                    ($0.key, suspicion.evaluate($0, acceptedAt: acceptedAt, reportedSpikes: reportedSpikes))
                }
                try await transaction.keep(evaluated, now: now)
                for (_, evaluation) in evaluated { report.decided[evaluation.decision, default: 0] += 1 }
                report.deadEvidence = dead
                report.hasMore = due.count + dead.count == Self.batch
            }
            return report
        }
    }

    /// Claims due approved evidence for `lease`. Another process may claim it afterwards.
    ///
    /// Marks rows as dead if they cannot be decoded.
    package func claim(
        now: Timestamp, lease: Duration
    ) async throws(PostgresError) -> (readable: [Evidence], dead: [DeadEvidence]) {
        let rows = try await database.query(
            """
            UPDATE feedback.evidence e SET due_at = \((now + lease).date)
            FROM (
                SELECT notification_id, device_id FROM feedback.evidence
                WHERE decision = 'approved' AND due_at <= \(now.date) AND dead_at IS NULL
                ORDER BY due_at LIMIT \(Self.batch) FOR UPDATE SKIP LOCKED
            ) AS c
            WHERE e.notification_id = c.notification_id AND e.device_id = c.device_id
            RETURNING e.*, 0::bigint AS suspicions
            """)
        let evidence = try rows.evidence()
        try await markDead(evidence.dead, because: DeadEvidence.unreadable)
        return evidence
    }

    /// Marks rows as dead. Workers skip them.
    package func markDead(_ dead: [DeadEvidence], because reason: String) async throws(PostgresError) {
        guard !dead.isEmpty else { return }
        try await database.execute(DeadEvidence.markingDead(of: dead.map(\.key), because: reason))
    }

    /// Marks the evidence as published after the broker's confirm.
    package func markPublished(_ evidence: [Evidence], now: Timestamp) async throws(PostgresError) {
        try await database.execute(
            """
            UPDATE feedback.evidence e SET decision = 'published', decided_at = \(now.date), due_at = NULL
            FROM unnest(\(evidence.map(\.key.notification))::uuid[], \(evidence.map(\.key.device))::uuid[])
                AS c (notification_id, device_id)
            WHERE e.notification_id = c.notification_id AND e.device_id = c.device_id AND e.decision = 'approved'
            """)
    }

    /// Returns the number of quarantined registrations of each app.
    package func quarantined() async throws(PostgresError) -> [AppID: Int] {
        let rows = try await database.query(
            """
            SELECT app, count(DISTINCT device_id) AS devices FROM feedback.evidence
            WHERE decision = 'quarantined' GROUP BY app
            """)
        var counts: [AppID: Int] = [:]
        for row in rows {
            guard let app = AppID(rawValue: try row.decode(String.self, at: "app")) else { continue }
            counts[app] = Int(try row.decode(Int64.self, at: "devices"))
        }
        return counts
    }

    /// Deletes one batch of evidence that was decided before `moment`, oldest first.
    ///
    /// Keeps waiting, approved and quarantined evidence.
    ///
    /// - Returns: Whether more may remain.
    package func deleteEvidence(before moment: Timestamp) async throws(PostgresError) -> Bool {
        try await database.execute(
            """
            DELETE FROM feedback.evidence WHERE (notification_id, device_id) IN (
                SELECT notification_id, device_id FROM feedback.evidence
                WHERE decision IN ('stale', 'kept', 'discarded', 'published')
                    AND coalesce(decided_at, observed_at) < \(moment.date)
                ORDER BY coalesce(decided_at, observed_at) LIMIT \(Self.batch) FOR UPDATE SKIP LOCKED)
            """) == Self.batch
    }

    /// Deletes the erasures that were recorded before `moment`.
    package func deleteErasures(before moment: Timestamp) async throws(PostgresError) {
        try await database.execute("DELETE FROM feedback.erasure WHERE noted_at < \(moment.date)")
    }

    package func deleteRouteHealth(before moment: Timestamp) async throws(PostgresError) {
        try await database.execute("DELETE FROM feedback.pulse WHERE minute < \(moment.date)")
    }
}

extension Evaluation {
    /// The column `decision`.
    var decision: String {
        switch self {
        case .approve: "approved"
        case .keep: "kept"
        case .quarantine: "quarantined"
        }
    }

    /// The column `detail`.
    var detail: String? {
        switch self {
        case .approve, .keep: nil
        case .quarantine(let reason): reason.rawValue
        }
    }
}

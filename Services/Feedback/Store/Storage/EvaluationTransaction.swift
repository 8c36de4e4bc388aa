import FoundationEssentials
import Postgres
import PushProtocol

extension PostgresTransaction {
    /// Locks and reads the route's guard; `nil` if another process holds the lock.
    func guardState(of route: FeedbackRoute) async throws(PostgresError) -> GuardState? {
        let rows = try await query(
            """
            SELECT tripped_at, held_until FROM feedback.guard
            WHERE app = \(route.app.rawValue) AND provider = \(route.origin.rawValue)
                AND environment = \(route.environmentLabel)
            FOR UPDATE SKIP LOCKED
            """)
        guard let row = rows.first else { return nil }
        guard let since = try row.decode(Date?.self, at: "tripped_at"),
            let until = try row.decode(Date?.self, at: "held_until")
        else { return .atRest }
        return .tripped(since: Timestamp(since), until: Timestamp(until))
    }

    /// Writes the guard's state. Without new counts, keeps the former spike's counts while the guard stays tripped.
    func set(
        _ state: GuardState, was before: GuardState, _ spike: ObservedSpike?, reportedUntil: Timestamp?,
        on route: FeedbackRoute
    ) async throws(PostgresError) {
        var moments: (since: Date?, until: Date?)
        if case .tripped(let since, let until) = state { moments = (since.date, until.date) }
        try await execute(
            """
            UPDATE feedback.guard SET tripped_at = \(moments.since), held_until = \(moments.until),
                told_until = greatest(told_until, \(reportedUntil?.date)::timestamptz),
                refused = coalesce(
                    \((spike?.refused).map(Int64.init)), CASE WHEN \(before != .atRest) THEN refused END),
                answered = coalesce(
                    \((spike?.answered).map(Int64.init)), CASE WHEN \(before != .atRest) THEN answered END)
            WHERE app = \(route.app.rawValue) AND provider = \(route.origin.rawValue)
                AND environment = \(route.environmentLabel)
            """)
    }

    /// Counts rejections and answers by minute, from the minute before the oldest waiting evidence.
    ///
    /// A user counts in the first minute with a rejection of an established registration. Excludes new registrations,
    /// and released and discarded evidence.
    func minutes(of route: FeedbackRoute) async throws(PostgresError) -> [RouteMinute] {
        let rows = try await query(
            """
            WITH start AS (
                SELECT date_trunc('minute', min(observed_at)) - interval '1 minute' AS at FROM feedback.evidence
                WHERE app = \(route.app.rawValue) AND provider = \(route.origin.rawValue)
                    AND environment = \(route.environmentLabel) AND decision = 'waiting'
                    AND dead_at IS NULL
            ), refusal AS (
                SELECT owner, date_trunc('minute', observed_at) AS minute FROM feedback.evidence, start
                WHERE app = \(route.app.rawValue) AND provider = \(route.origin.rawValue)
                    AND environment = \(route.environmentLabel) AND observed_at >= start.at
                    AND owner IS NOT NULL AND finding IN ('gone', 'suspect', 'fid-gone') AND (decision IN ('waiting', 'kept', 'quarantined')
                        OR decision IN ('approved', 'published') AND detail IS NULL)
            ), refused AS (
                SELECT minute, count(*) AS refused FROM refusal GROUP BY minute
            ), registration AS (
                SELECT minute, count(*) AS registrations
                FROM (SELECT min(minute) AS minute FROM refusal GROUP BY owner) AS person GROUP BY minute
            ), answer AS (
                SELECT minute, sum(answered)::bigint AS answered FROM feedback.pulse, start
                WHERE app = \(route.app.rawValue) AND provider = \(route.origin.rawValue)
                    AND environment = \(route.environmentLabel) AND minute >= start.at
                GROUP BY minute
            )
            SELECT minute, coalesce(registrations, 0) AS registrations, coalesce(refused, 0) AS refused,
                coalesce(answered, 0) AS answered
            FROM refused LEFT JOIN registration USING (minute) FULL JOIN answer USING (minute)
            """)
        return try rows.map { row throws(PostgresError) in
            RouteMinute(
                minute: Timestamp(try row.decode(Date.self, at: "minute")),
                registrations: Int(try row.decode(Int64.self, at: "registrations")),
                refused: Int(try row.decode(Int64.self, at: "refused")),
                answered: Int(try row.decode(Int64.self, at: "answered")))
        }
    }

    /// Counts the approved rejections and the answers on the route in the day before `moment`.
    ///
    /// Excludes evidence that an operator released from quarantine.
    func dayBefore(_ moment: Timestamp, on route: FeedbackRoute) async throws(PostgresError) -> (
        believed: Int, answered: Int
    ) {
        let rows = try await query(
            """
            SELECT (
                SELECT count(*) FROM feedback.evidence
                WHERE app = \(route.app.rawValue) AND provider = \(route.origin.rawValue)
                    AND environment = \(route.environmentLabel)
                    AND owner IS NOT NULL AND finding IN ('gone', 'suspect', 'fid-gone')
                    AND observed_at >= \((moment + .seconds(-86_400)).date) AND observed_at < \(moment.date)
                    AND decision IN ('approved', 'published') AND detail IS NULL
            ) AS believed, (
                SELECT coalesce(sum(answered), 0)::bigint FROM feedback.pulse
                WHERE app = \(route.app.rawValue) AND provider = \(route.origin.rawValue)
                    AND environment = \(route.environmentLabel)
                    AND minute >= \((moment + .seconds(-86_400)).date) AND minute < \(moment.date)
            ) AS answered
            """)
        guard let row = rows.first else { return (0, 0) }
        return (
            Int(try row.decode(Int64.self, at: "believed")), Int(try row.decode(Int64.self, at: "answered"))
        )
    }

    /// Quarantines all waiting evidence of the route. Returns the number of rows.
    func quarantineEverything(on route: FeedbackRoute, now: Timestamp) async throws(PostgresError) -> Int {
        try await execute(
            """
            UPDATE feedback.evidence
            SET decision = 'quarantined', detail = \(Evaluation.QuarantineReason.badTokenSpike.rawValue), decided_at = \(now.date),
                due_at = NULL
            WHERE app = \(route.app.rawValue) AND provider = \(route.origin.rawValue)
                AND environment = \(route.environmentLabel) AND decision = 'waiting' AND dead_at IS NULL
            """)
    }

    /// Reads up to one batch of due evidence of the route. Marks rows as dead if they cannot be decoded.
    func due(
        on route: FeedbackRoute, now: Timestamp
    ) async throws(PostgresError) -> (readable: [Evidence], dead: [DeadEvidence]) {
        let rows = try await query(
            """
            SELECT e.*, CASE WHEN e.finding = 'suspect' THEN (
                SELECT count(*) FROM feedback.evidence s WHERE s.device_id = e.device_id AND s.finding = 'suspect'
                    AND s.decision NOT IN ('discarded', 'stale') AND s.registered_at IS NOT DISTINCT FROM e.registered_at
            ) WHEN e.finding = 'fid-gone' THEN (
                SELECT count(*) FROM feedback.evidence s
                WHERE s.device_id = e.device_id AND s.finding IN ('fid-gone', 'fid-contradicted')
                    AND s.decision NOT IN ('discarded', 'stale')
                    AND s.observed_at BETWEEN e.observed_at - interval '7 days' AND e.observed_at - interval '1 day'
            ) ELSE 0 END AS suspicions
            FROM feedback.evidence e
            WHERE app = \(route.app.rawValue) AND provider = \(route.origin.rawValue)
                AND environment = \(route.environmentLabel) AND decision = 'waiting' AND due_at <= \(now.date)
                AND dead_at IS NULL
            ORDER BY due_at LIMIT \(EvaluationStore.batch)
            """)
        let evidence = try rows.evidence()
        if !evidence.dead.isEmpty {
            try await execute(DeadEvidence.markingDead(of: evidence.dead.map(\.key), because: DeadEvidence.unreadable))
        }
        return evidence
    }

    /// The time of the provider's last acceptance on the route that a sender reported.
    func lastAcceptance(on route: FeedbackRoute) async throws(PostgresError) -> Timestamp? {
        try await query(
            """
            SELECT max(accepted_at) FROM feedback.pulse
            WHERE app = \(route.app.rawValue) AND provider = \(route.origin.rawValue)
                AND environment = \(route.environmentLabel)
            """
        ).single(Date?.self).map(Timestamp.init)
    }

    /// The end of the latest reported spike; `nil` if the guard has already handled it.
    func newlyReportedSpike(of route: FeedbackRoute) async throws(PostgresError) -> Timestamp? {
        try await query(
            """
            SELECT max(p.storm_until) FROM feedback.pulse p JOIN feedback.guard g USING (app, provider, environment)
            WHERE app = \(route.app.rawValue) AND provider = \(route.origin.rawValue)
                AND environment = \(route.environmentLabel)
                AND p.storm_until > coalesce(g.told_until, '-infinity')
            """
        ).single(Date?.self).map(Timestamp.init)
    }

    /// The spikes that senders reported for the route, within the retention of health reports.
    func reportedSpikes(on route: FeedbackRoute) async throws(PostgresError) -> [RouteHealth.BadTokenSpike] {
        let rows = try await query(
            """
            SELECT storm_since, max(storm_until) AS storm_until FROM feedback.pulse
            WHERE app = \(route.app.rawValue) AND provider = \(route.origin.rawValue)
                AND environment = \(route.environmentLabel) AND storm_until IS NOT NULL
            GROUP BY storm_since
            """)
        return try rows.map { row throws(PostgresError) in
            RouteHealth.BadTokenSpike(
                since: Timestamp(try row.decode(Date.self, at: "storm_since")),
                until: Timestamp(try row.decode(Date.self, at: "storm_until")))
        }
    }

    /// Stores the decisions. Approved evidence is due at once.
    func keep(_ evaluated: [(Evidence.Key, Evaluation)], now: Timestamp) async throws(PostgresError) {
        guard !evaluated.isEmpty else { return }
        try await execute(
            """
            UPDATE feedback.evidence e
            SET decision = c.decision, detail = c.detail, decided_at = \(now.date),
                due_at = CASE WHEN c.decision = 'approved' THEN \(now.date)::timestamptz END
            FROM unnest(
                \(evaluated.map(\.0.notification))::uuid[], \(evaluated.map(\.0.device))::uuid[],
                \(evaluated.map(\.1.decision))::text[], \(evaluated.map(\.1.detail))::text[]
            ) AS c (notification_id, device_id, decision, detail)
            WHERE e.notification_id = c.notification_id AND e.device_id = c.device_id
            """)
    }
}

import FoundationEssentials
import Logging
import Messaging
import Postgres
import PushProtocol
import ServiceConnections
import ServiceKit

/// Counts the results of each rule, from the decision log.
struct StatsStore: Sendable {
    let pool: PostgresPool
    var logger = Logger.rules

    /// Counts the due hours, each in its own transaction, and deletes counts whose retention has ended.
    ///
    /// Any number of processes may run it: one counts, and the others return.
    ///
    /// If an hour fails, its apps are counted one by one. An app that fails does not block the others, and is retried
    /// when the hour is due again. An hour in which every app fails does not block other hours, and is retried with the
    /// next call.
    ///
    /// - Returns: the counted hours.
    /// - Throws: the first failure, after all other hours are counted.
    @discardableResult
    func count(now: Timestamp) async throws -> [Timestamp] {
        var counted: [Timestamp] = []
        var failure: (any Error)?
        for hour in StatsRollupPlan.due(try await countedHours(now: now), now: now) where !Task.isCancelled {
            do {
                switch try await count(hour, now: now) {
                case .done: counted.append(hour)
                case .doneByAnother: continue
                case .lockedByAnother: return counted
                }
            } catch let error where error.isCausedByRows {
                failure = failure ?? error
            }
        }
        let past = (now - StatsRollupPlan.retention).date
        try await Outage.ofDatabase {
            for table: SQL in ["rules.tally", "rules.tally_hour"] {
                try await pool.execute("DELETE FROM \(table) WHERE hour < \(past)")
            }
        }
        if let failure { throw failure }
        return counted
    }

    /// The result of counting an hour.
    private enum Count {
        case done, doneByAnother, lockedByAnother
    }

    private func count(_ hour: Timestamp, now: Timestamp) async throws -> Count {
        try await Outage.ofDatabase {
            do { return try await count(hour, of: nil, now: now) } catch let error where error.isCausedByRows {
                let apps = try await pool.query(
                    """
                    SELECT DISTINCT app FROM rules.event
                    WHERE key IN (SELECT event FROM rules.decision WHERE \(Self.isIn(hour)))
                    """
                ).column(String.self)
                var failed: [String] = []
                for app in apps {
                    do {
                        guard case .done = try await count(hour, of: app, now: now) else { return .lockedByAnother }
                    } catch let error where error.isCausedByRows {
                        failed.append(app)
                        logger.warning(
                            "Cannot count an app's decisions of this hour; retrying when the hour is due again",
                            metadata: [LogKey.app: "\(app)", "hour": "\(hour)", LogKey.error: "\(error)"])
                    }
                }
                guard failed.count < apps.count else { throw error }
                try await pool.execute(Self.note(hour, now: now))
                return .done
            }
        }
    }

    /// - Parameter app: `nil`: all apps, and the hour is marked as counted.
    private func count(_ hour: Timestamp, of app: String?, now: Timestamp) async throws -> Count {
        try await pool.transaction { transaction in
            guard try await transaction.query(AdvisoryLock.tallies.attempt).single(Bool.self) else {
                return .lockedByAnother
            }
            // The previous holder of the lock may have counted the hour.
            let known = try await transaction.query(Self.countedHour(hour)).first
            if let counted = try known.map({ Timestamp(try $0.decode(Date.self, at: 0)) }) {
                guard StatsRollupPlan.due([hour: counted], now: now).contains(hour) else { return .doneByAnother }
            }
            try await transaction.execute(Self.count(hour, of: app))
            if app == nil { try await transaction.execute(Self.note(hour, now: now)) }
            return .done
        }
    }

    private static func isIn(_ hour: Timestamp) -> SQL {
        "decided_at >= \(hour.date) AND decided_at < \((hour + StatsRollupPlan.hour).date)"
    }

    private func countedHours(now: Timestamp) async throws -> [Timestamp: Timestamp] {
        let oldest = StatsRollupPlan.hour(of: now - StatsRollupPlan.maximumAge)
        return try await Outage.ofDatabase {
            var hours: [Timestamp: Timestamp] = [:]
            for row in try await pool.query(
                "SELECT hour, counted_at FROM rules.tally_hour WHERE hour >= \(oldest.date)")
            {
                hours[Timestamp(try row.decode(Date.self, at: 0))] = Timestamp(try row.decode(Date.self, at: 1))
            }
            return hours
        }
    }

    private static func countedHour(_ hour: Timestamp) -> SQL {
        "SELECT counted_at FROM rules.tally_hour WHERE hour = \(hour.date)"
    }

    private static func note(_ hour: Timestamp, now: Timestamp) -> SQL {
        """
        INSERT INTO rules.tally_hour (hour, counted_at) VALUES (\(hour.date), \(now.date))
        ON CONFLICT (hour) DO UPDATE SET counted_at = EXCLUDED.counted_at
        """
    }

    /// Counts the final decision of each notification; `hold` and `digest` are not final.
    ///
    /// Outcomes are looked up by notification id, so the cost depends on the decisions of the hour and not on the size
    /// of the log. A rule set version belongs to one app, so any of its events gives the app.
    ///
    /// A recount never lowers a count, because the log may be deleted in part. The exception is `failed` while the log
    /// is complete: another device may accept the push later.
    private static func count(_ hour: Timestamp, of app: String?) -> SQL {
        let isWanted: SQL =
            app.map { "AND event IN (SELECT key FROM rules.event WHERE app = \($0))" } ?? ""
        return """
            WITH decided AS (
                SELECT notification, event, rule, rule_set, answer LIKE 'push%' AS is_sent FROM rules.decision
                WHERE \(isIn(hour)) \(isWanted)
                    AND answer NOT IN ('hold', 'digest') AND rule_set IS NOT NULL
            ), counted AS (
                SELECT decided.rule, decided.rule_set, min(decided.event::text)::uuid AS event,
                    count(*) FILTER (WHERE is_sent) AS sent, count(*) FILTER (WHERE NOT is_sent) AS unsent,
                    count(*) FILTER (WHERE is_sent AND said.is_accepted) AS accepted,
                    count(*) FILTER (WHERE is_sent AND said.is_failed) AS failed,
                    count(*) FILTER (WHERE done.is_opened) AS opened,
                    count(*) FILTER (WHERE done.is_dismissed) AS dismissed
                FROM decided
                    LEFT JOIN LATERAL (
                        SELECT bool_or(disposition = 'accepted') AS is_accepted,
                            bool_or(origin <> 'registry' AND disposition IN ('unregistered', 'rejected', 'expired', 'misconfigured'))
                                AND NOT bool_or(disposition IN ('accepted', 'unknown')) AS is_failed
                        FROM rules.outcome WHERE outcome.notification = decided.notification
                    ) AS said ON is_sent
                    LEFT JOIN LATERAL (
                        SELECT bool_or(what = 'opened') AS is_opened, bool_or(what = 'dismissed') AS is_dismissed
                        FROM rules.receipt WHERE receipt.notification = decided.notification
                    ) AS done ON true
                GROUP BY decided.rule, decided.rule_set
            )
            INSERT INTO rules.tally AS old (hour, app, rule, rule_set, sent, unsent, accepted, failed, opened, dismissed)
            SELECT \(hour.date), event.app, rule, counted.rule_set, sent, unsent, accepted, failed, opened, dismissed
            FROM counted JOIN rules.event ON event.key = counted.event
            ON CONFLICT (hour, app, rule, rule_set) DO UPDATE SET
                sent = greatest(old.sent, EXCLUDED.sent), unsent = greatest(old.unsent, EXCLUDED.unsent),
                accepted = greatest(old.accepted, EXCLUDED.accepted),
                failed = CASE WHEN EXCLUDED.sent < old.sent THEN old.failed ELSE EXCLUDED.failed END,
                opened = greatest(old.opened, EXCLUDED.opened), dismissed = greatest(old.dismissed, EXCLUDED.dismissed)
            """
    }
}

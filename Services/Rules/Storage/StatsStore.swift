import FoundationEssentials
import Logging
import Messaging
import Postgres
import PushProtocol
import ServiceConnections
import ServiceKit

/// Counts what came of each rule, from the log of decisions.
struct StatsStore: Sendable {
    let pool: PostgresPool
    var logger = Logger.rules

    /// Counts the hours that are due, each in a transaction of its own; and forgets those that are too old.
    ///
    /// Any number of processes may do this: one counts at a time, the others find nothing to do.
    ///
    /// An hour that cannot be counted is counted app by app. An app that cannot be counted keeps no other from being
    /// counted, and is counted again when its hour is due again. An hour of which no app can be counted keeps no other hour
    /// from being counted; it is counted with the next call, if it can be.
    ///
    /// - Returns: the hours that were counted.
    /// - Throws: the first failure, when every other hour was counted.
    @discardableResult
    func count(now: Timestamp) async throws -> [Timestamp] {
        var counted: [Timestamp] = []
        var failure: (any Error)?
        for hour in StatsRollupPlan.due(try await countedHours(now: now), now: now) where !Task.isCancelled {
            do {
                switch try await count(hour, now: now) {
                case .done: counted.append(hour)
                case .doneByAnother: continue
                case .othersAreAtIt: return counted
                }
            } catch let error where error.isOfTheWork {
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

    /// What came of an hour.
    private enum Count {
        case done, doneByAnother, othersAreAtIt
    }

    private func count(_ hour: Timestamp, now: Timestamp) async throws -> Count {
        try await Outage.ofDatabase {
            do { return try await count(hour, of: nil, now: now) } catch let error where error.isOfTheWork {
                let apps = try await pool.query(
                    """
                    SELECT DISTINCT app FROM rules.event
                    WHERE key IN (SELECT event FROM rules.decision WHERE \(Self.isIn(hour)))
                    """
                ).map { try $0.decode(String.self, at: 0) }
                var failed: [String] = []
                for app in apps {
                    do {
                        guard case .done = try await count(hour, of: app, now: now) else { return .othersAreAtIt }
                    } catch let error where error.isOfTheWork {
                        failed.append(app)
                        logger.warning(
                            "An app's decisions of an hour cannot be counted; they are tried again when the hour is due",
                            metadata: [LogKey.app: "\(app)", "hour": "\(hour)", LogKey.error: "\(error)"])
                    }
                }
                guard failed.count < apps.count else { throw error }
                try await pool.execute(Self.note(hour, now: now))
                return .done
            }
        }
    }

    /// - Parameter app: `nil`: every app, after which the hour is counted.
    private func count(_ hour: Timestamp, of app: String?, now: Timestamp) async throws -> Count {
        try await pool.transaction { transaction in
            guard try await transaction.query(AdvisoryLock.tallies.attempt).single(Bool.self) else {
                return .othersAreAtIt
            }
            // The lock's former holder may have counted it.
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

    /// Of a notification the last decision counts, which is neither to hold it nor to gather it. What was sent is looked up
    /// by its id, so that an hour costs as much as was decided in it, however long the log is. A version of the rules is one
    /// app's, so one event of it tells whose.
    ///
    /// Answers are only ever added, but the log is deleted some day, and what was counted before is true all the same. Less has
    /// failed, while the log is whole, when another device has taken it after all.
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

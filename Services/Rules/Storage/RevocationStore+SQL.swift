import DecisionLog
import FoundationEssentials
import Postgres
import PushProtocol

extension RevocationStore {
    static let isDue: SQL = "due_at <= clock_timestamp() AND dead_at IS NULL"

    static func claim(_ which: SQL) -> SQL {
        """
        UPDATE rules.revocation SET due_at = clock_timestamp() + \(lease)
        WHERE id IN (SELECT id FROM rules.revocation \(which) FOR UPDATE SKIP LOCKED)
        RETURNING \(Revocation.columns), position
        """
    }

    static func lockFanOuts(of revocation: Revocation) -> SQL {
        """
        SELECT event, rule FROM rules.crowd
        WHERE due_at IS NOT NULL AND \(RevocationSelection.fanOuts(of: revocation.target, app: revocation.app))
        ORDER BY event, rule FOR UPDATE
        """
    }

    /// Makes fan-outs due, except those whose decided step another process publishes.
    static func hurry(_ revocation: Revocation, now: Timestamp) -> SQL {
        """
        UPDATE rules.crowd SET due_at = least(due_at, \(now.date))
        WHERE due_at IS NOT NULL AND decided IS NULL
            AND \(RevocationSelection.fanOuts(of: revocation.target, app: revocation.app))
        """
    }

    /// Drops held notifications, and returns their number.
    static func withdraw(_ notifications: [UUID], now: Timestamp) -> SQL {
        """
        WITH \(DroppedRows.held(where: "held.notification = ANY(\(notifications))", reason: "'revoked'")),
            decided AS (\(DroppedRows.decideHeld(now: now)))
        SELECT count(*) FROM gone
        """
    }

    /// Locks the digests with entries of these notifications, in the order in which decisions lock them.
    static func lockDigests(of notifications: [UUID]) -> SQL {
        """
        SELECT app FROM rules.digest WHERE (app, user_id, bucket) IN (
            SELECT app, user_id, bucket FROM rules.digest_item WHERE notification = ANY(\(notifications)))
        ORDER BY app COLLATE "C", user_id COLLATE "C", bucket COLLATE "C" FOR UPDATE
        """
    }

    /// Drops the entries of digests, and returns their number.
    static func remove(_ notifications: [UUID], now: Timestamp) -> SQL {
        """
        WITH gone AS (
            DELETE FROM rules.digest_item WHERE notification = ANY(\(notifications))
            RETURNING \(DroppedRows.gathered), 'revoked' AS reason
        ), decided AS (\(DroppedRows.decideGathered(now: now)))
        SELECT count(*) FROM gone
        """
    }
}

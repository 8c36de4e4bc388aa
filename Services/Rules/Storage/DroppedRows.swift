import Postgres
import PushProtocol

/// Parts of statements that drop held and gathered notifications. Each dropped notification gets a last decision.
enum DroppedRows {
    /// A common table expression `gone` that deletes held notifications. Released ones stay until they are published.
    ///
    /// - Parameters:
    ///   - condition: on `held`, and on the tables of `joined`.
    ///   - joined: further tables, each after a comma.
    ///   - reason: an expression for the decision's reason.
    static func held(where condition: SQL, joining joined: SQL = "", reason: SQL) -> SQL {
        """
        gone AS (
            DELETE FROM rules.held USING rules.saying\(joined)
            WHERE \(condition) AND held.leaving IS NULL AND saying.id = held.saying
            RETURNING held.notification, held.step, held.event, saying.rule, held.user_id, \(reason) AS reason
        )
        """
    }

    /// Inserts the decisions about the held notifications in `gone`.
    static func decideHeld(now: Timestamp) -> SQL { decide(step: "step", now: now) }

    /// The columns of `digest_item` that ``decideGathered(now:)`` needs in `gone`, besides the reason.
    static let gathered: SQL = "notification, event, split_part(bucket, '/', 1) AS rule, user_id, is_told"

    /// Inserts the decisions about the entries of digests in `gone`. An entry of a sent digest keeps its last decision.
    static func decideGathered(now: Timestamp) -> SQL {
        decide(
            step:
                "1 + coalesce((SELECT max(step) FROM rules.decision WHERE decision.notification = gone.notification), 0)",
            where: "WHERE NOT is_told", now: now)
    }

    private static func decide(step: SQL, where condition: SQL = "", now: Timestamp) -> SQL {
        """
        INSERT INTO rules.decision (notification, step, event, rule, user_id, decided_at, answer, reason)
        SELECT notification, \(step), event, rule, user_id, \(now.date), 'drop', reason FROM gone \(condition)
        ON CONFLICT DO NOTHING
        """
    }
}

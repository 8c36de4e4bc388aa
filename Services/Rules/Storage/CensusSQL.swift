import Postgres
import PushProtocol

enum CensusSQL {
    /// Selects the notifications whose last decision is in an interval, each with its state. The state is `NULL` for a
    /// push without an outcome. Held and gathered notifications are counted from their own tables (``insertPresent``).
    private static func placed(_ start: Timestamp) -> SQL {
        let end = start + CensusPlan.interval
        return """
            last AS (
                SELECT notification, event, rule, rule_set, answer, reason, decided_at FROM rules.decision
                WHERE decided_at >= \(start.date) AND decided_at < \(end.date)
                    AND NOT (answer IN ('hold', 'digest') AND EXISTS (
                        SELECT FROM rules.decision AS later
                        WHERE later.notification = decision.notification AND later.step > decision.step))
            ), placed AS (
                SELECT notification, event, rule, rule_set, decided_at,
                    -- The sender's clock may be behind.
                    CASE WHEN said.evidence_at IS NOT NULL THEN greatest(said.evidence_at, decided_at) END AS evidence_at,
                    CASE
                        WHEN answer = 'inbox' THEN 'inbox'
                        WHEN answer = 'drop' THEN 'dropped'
                        WHEN answer = 'hold' THEN 'removed'
                        WHEN answer = 'digest' AND reason = 'summed-up' THEN 'digested'
                        WHEN answer = 'digest' THEN 'replaced'
                        WHEN answer NOT IN ('push', 'push-quietly') THEN 'unexplained'
                        WHEN reason IN ('audience', 'segment') THEN 'campaign'
                        WHEN said.number = 0 THEN NULL
                        ELSE said.state
                    END AS state
                FROM last LEFT JOIN LATERAL (
                        SELECT count(*) AS number,
                            CASE
                                WHEN bool_or(disposition = 'accepted') THEN 'accepted'
                                WHEN bool_or(disposition = 'unknown') THEN 'unknown'
                                WHEN bool_or(disposition IN ('unregistered', 'rejected', 'throttled', 'misconfigured'))
                                    THEN 'failed'
                                WHEN bool_or(disposition = 'expired') THEN 'expired'
                                WHEN bool_or(disposition = 'skipped') THEN 'skipped'
                                ELSE 'unexplained'
                            END AS state,
                            max(at) FILTER (WHERE origin <> 'registry' AND disposition IN ('unregistered', 'rejected'))
                                AS evidence_at
                        FROM rules.outcome WHERE outcome.notification = last.notification
                    ) AS said ON answer IN ('push', 'push-quietly')
                WHERE NOT (answer = 'hold'
                        AND EXISTS (SELECT FROM rules.held WHERE held.notification = last.notification))
                    AND NOT (answer = 'digest' AND reason <> 'summed-up' AND EXISTS (
                        SELECT FROM rules.digest_item WHERE digest_item.notification = last.notification))
            )
            """
    }

    private static func evidenceUntil(_ start: Timestamp) -> SQL {
        "coalesce((SELECT evidence_until FROM rules.census_interval WHERE start_at = \(start.date)), '-infinity')"
    }

    /// Selects app, state, number and whether there are new reports against tokens.
    ///
    /// A rule set belongs to one app, so any of its events gives the app. Decisions without one are few.
    ///
    /// - Parameter withEvents: whether to count events without a decision. Their insertion may be late.
    static func counts(_ start: Timestamp, withEvents: Bool) -> SQL {
        """
        WITH \(placed(start)), grouped AS (
            SELECT (array_agg(event))[1] AS event, state, count(*) AS number,
                coalesce(bool_or(evidence_at > \(evidenceUntil(start)) OR state = 'unexplained'), false) AS has_items
            FROM placed GROUP BY rule_set, CASE WHEN rule_set IS NULL THEN event END, state
        )
        SELECT app, state, sum(number)::bigint, bool_or(has_items)
        FROM grouped JOIN rules.event ON event.key = grouped.event GROUP BY app, state
        \(withEvents ? withoutRecipient(start) : "")
        """
    }

    private static func withoutRecipient(_ start: Timestamp) -> SQL {
        """
        UNION ALL
        SELECT app, 'no-recipient', count(*), false FROM rules.event
        WHERE arrived_at >= \(start.date) AND arrived_at < \((start + CensusPlan.interval).date)
            AND NOT EXISTS (SELECT FROM rules.decision WHERE decision.event = event.key)
            AND NOT EXISTS (SELECT FROM rules.crowd WHERE crowd.event = event.key)
        GROUP BY app
        """
    }

    /// Selects the notifications that the reports of the stages place.
    static func items(_ start: Timestamp) -> SQL {
        """
        WITH \(placed(start))
        SELECT placed.notification, event.app, event.id, decided_at, evidence_at, state,
            held.notification IS NOT NULL OR EXISTS (
                SELECT FROM rules.crowd WHERE (crowd.event, crowd.rule) = (placed.event, placed.rule)
                    AND crowd.due_at IS NOT NULL AND crowd.dead_at IS NULL),
            held.dead_at IS NOT NULL
        FROM placed JOIN rules.event ON event.key = placed.event
            LEFT JOIN rules.held ON held.notification = placed.notification
        WHERE state IS NULL OR state = 'unexplained' OR evidence_at > \(evidenceUntil(start))
        ORDER BY decided_at, placed.notification LIMIT \(CensusPlan.mostItems)
        """
    }

    /// - Parameter start: `nil` for states without an interval.
    static func insert(_ counts: [CensusCount], _ start: Timestamp?) -> SQL {
        let startAt: SQL = start.map { "\($0.date)" } ?? "'-infinity'"
        return """
            INSERT INTO rules.census_count (start_at, app, state, number, oldest_at)
            SELECT \(startAt), app, state, number, oldest_at FROM unnest(
                \(counts.map(\.app)), \(counts.map(\.state)), \(counts.map(\.number)), \(counts.map(\.oldestAt?.date))
            ) AS new (app, state, number, oldest_at)
            ON CONFLICT (start_at, app, state) DO UPDATE SET number = census_count.number + EXCLUDED.number
            """
    }

    /// Counts held and gathered notifications, fan-outs in progress, and dead rows of these.
    static let insertPresent: SQL = """
        INSERT INTO rules.census_count (start_at, app, state, number, oldest_at)
        SELECT '-infinity', app, state, sum(number), min(oldest_at) FROM (
            SELECT app, CASE WHEN dead_at IS NULL THEN 'held' ELSE 'dead-row' END AS state, count(*) AS number,
                min(since) AS oldest_at
            FROM rules.held WHERE leaving IS NULL GROUP BY 1, 2
            UNION ALL
            SELECT app, CASE WHEN dead_at IS NULL THEN 'digest' ELSE 'dead-row' END, count(*), min(said_at)
            FROM rules.digest_item WHERE NOT is_told GROUP BY 1, 2
            UNION ALL
            SELECT event.app, CASE WHEN dead_at IS NULL THEN 'fan-out' ELSE 'dead-row' END, count(*),
                min(crowd.arrived_at)
            FROM rules.crowd JOIN rules.event ON event.key = crowd.event WHERE crowd.due_at IS NOT NULL GROUP BY 1, 2
        ) AS present GROUP BY app, state
        """
}

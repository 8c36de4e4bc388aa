import DecisionLog
import FoundationEssentials
import Postgres
import PushProtocol
import RuleEngine

/// Statements about copies that phones may show (`rules.shown_copy`).
enum ShownCopyRows {
    /// Notes the pushes among these notifications that a phone may show now or later: visible pushes to users of the last
    /// seven days, except starts of live surfaces, which end otherwise (``SurfaceEnd``). A notification that was noted
    /// before stays unchanged.
    ///
    /// The identifier on the phone is the content's collapse key, which only the inbox item has, or the notification's
    /// id.
    static func note(_ notifications: [UUID], now: Timestamp) -> SQL {
        """
        INSERT INTO rules.shown_copy
            (notification, app, user_id, identifier, decided_at, noted_at, is_accepted)
        SELECT chosen.notification, event.app, last.user_id,
            coalesce(replacement.identifier, saying.content ->> 'collapseKey', chosen.notification::text),
            last.decided_at, \(now.date)::timestamptz, false
        FROM unnest(\(notifications)) AS chosen (notification)
            \(RevocationSelection.lastDecision(of: "chosen.notification"))
            JOIN rules.event ON event.key = last.event
            LEFT JOIN rules.inbox ON inbox.notification = chosen.notification
            LEFT JOIN rules.saying ON saying.id = inbox.saying
            LEFT JOIN rules.replacement ON replacement.notification = chosen.notification
        WHERE \(RevocationSelection.isVisible) AND NOT EXISTS (
            SELECT FROM rules.event_item AS about
            WHERE about.event = last.event AND about.rule = last.rule AND about.starts_surface)
        ORDER BY chosen.notification
        ON CONFLICT DO NOTHING
        """
    }

    /// Makes clear commands due for the noted copies that a provider has accepted, and returns the number of these
    /// copies.
    static func clearAccepted(_ notifications: [UUID], now: Timestamp) -> SQL {
        """
        WITH shown AS (
            UPDATE rules.shown_copy SET is_accepted = true
            WHERE notification = ANY(\(notifications)) AND NOT is_accepted AND EXISTS (
                SELECT FROM rules.outcome WHERE outcome.notification = shown_copy.notification AND \(RevocationSelection.isAccepted))
            RETURNING app, user_id
        ), due AS (\(ClearCommandStore.note(now: now)))
        SELECT count(*) FROM shown
        """
    }

    /// A statement part: notes that a provider accepted copies in the common table expression `stored`, also a copy that
    /// a command has named before.
    static let accept: SQL = """
        UPDATE rules.shown_copy SET is_accepted = true, command = NULL, sent_at = NULL FROM stored
        WHERE shown_copy.notification = stored.notification AND stored.\(RevocationSelection.isAccepted)
        RETURNING shown_copy.app, shown_copy.user_id
        """

    /// Statement parts that clear the items in the common table expression `changed`, which their user has read: pushes
    /// of the last seven days that providers accepted for two devices or more.
    static func clearElsewhere(now: Timestamp) -> SQL {
        """
        , shown AS (
            INSERT INTO rules.shown_copy
                (notification, app, user_id, identifier, decided_at, noted_at, is_accepted)
            SELECT changed.notification, changed.app, changed.user_id,
                coalesce(saying.content ->> 'collapseKey', changed.notification::text), last.decided_at,
                \(now.date)::timestamptz, true
            FROM changed
                \(RevocationSelection.lastDecision(of: "changed.notification"))
                LEFT JOIN rules.saying ON saying.id = changed.saying
            WHERE \(RevocationSelection.isVisible)
                AND (SELECT count(DISTINCT device) FROM rules.outcome
                    WHERE outcome.notification = changed.notification AND \(RevocationSelection.isAccepted)) > 1
            ORDER BY changed.notification
            ON CONFLICT DO NOTHING
            RETURNING app, user_id
        ), due AS (\(ClearCommandStore.note(now: now)))
        """
    }

    /// Clears a user's own notifications on all devices, for example after a dismissal on one.
    static func clear(_ notifications: [UUID], of person: PersonKey, now: Timestamp) -> SQL {
        """
        WITH changed AS (
            SELECT notification, app, user_id, saying FROM rules.inbox
            WHERE notification = ANY(\(notifications)) AND app = \(person.app.rawValue)
                AND user_id = \(person.user.rawValue)
        )\(clearElsewhere(now: now))
        SELECT count(*) FROM shown
        """
    }
}

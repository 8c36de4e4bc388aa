import DecisionLog
import FoundationEssentials
import Postgres
import PushProtocol
import RuleEngine
import RuleLanguage

/// Statements about replaced texts (``Replacement``).
enum ReplacementRows {
    struct Place: Hashable {
        var event: UUID
        var rule: String
    }

    /// A rule and an item whose notifications an event replaces.
    struct Asked {
        var event: UUID
        var rule: String
        var item: ItemKey
        var occurredAt: Timestamp
        var lifetime: Duration?

        var place: Place { Place(event: event, rule: rule) }

        static func all(of events: [EventCase]) -> [Asked] {
            events.flatMap { event in
                event.drafts.compactMap { draft in
                    guard let replacement = draft.replacement, let item = draft.item else { return nil }
                    return Asked(
                        event: event.record.key, rule: draft.rendered.rule, item: item,
                        occurredAt: event.record.occurredAt, lifetime: replacement.lifetime)
                }
            }
        }
    }

    /// A notification that an event replaces, and the position of its question.
    struct Chosen {
        var number: Int
        var asked: Asked
        var notification: UUID
    }

    /// Returns whether a fan-out has made notifications about the item.
    static func isLarge(_ asked: Asked) -> SQL {
        """
        SELECT EXISTS (
            SELECT FROM rules.event_item AS original JOIN rules.crowd USING (event, rule)
            WHERE original.app = \(asked.item.app.rawValue) AND original.item = \(asked.item.item)
                AND original.rule = \(asked.rule) AND original.occurred_at <= \(asked.occurredAt.date))
        """
    }

    /// Selects the events among these whose item has an original.
    static func known(_ asked: [Asked]) -> SQL {
        """
        SELECT DISTINCT asked.event FROM unnest(
            \(asked.map(\.event)), \(asked.map(\.rule)), \(asked.map(\.item.app.rawValue)), \(asked.map(\.item.item))
        ) AS asked (event, rule, app, item)
            JOIN rules.event_item AS original USING (app, item, rule)
        WHERE NOT original.is_replacement
        """
    }

    /// Selects the latest notification of each user, at most one more than the limit.
    static func latest(_ asked: Asked) -> SQL {
        """
        SELECT notification FROM (
            SELECT DISTINCT ON (decision.user_id) decision.user_id, decision.notification
            FROM rules.event_item AS original
                JOIN rules.decision ON (decision.event, decision.rule) = (original.event, original.rule)
            WHERE original.app = \(asked.item.app.rawValue) AND original.item = \(asked.item.item)
                AND original.rule = \(asked.rule) AND NOT original.is_replacement
                AND original.occurred_at <= \(asked.occurredAt.date) AND decision.step = 0
            ORDER BY decision.user_id, original.occurred_at DESC, decision.notification
        ) AS latest LIMIT \(Replacement.maximumNotifications + 1)
        """
    }

    /// Selects the state of each chosen notification.
    static func states(_ chosen: [Chosen]) -> SQL {
        """
        SELECT chosen.number, last.user_id, chosen.notification, last.answer, last.reason, last.decided_at,
            held.notification IS NOT NULL OR EXISTS (
                SELECT FROM rules.digest_item WHERE digest_item.notification = chosen.notification AND NOT is_told),
            inbox.notification IS NOT NULL,
            EXISTS (SELECT FROM rules.outcome WHERE outcome.notification = chosen.notification),
            inbox.read_at IS NOT NULL
                OR EXISTS (SELECT FROM rules.receipt WHERE receipt.notification = chosen.notification),
            \(isRevoked),
            EXISTS (
                SELECT FROM rules.event_item AS later
                WHERE later.app = original.app AND later.item = original.item AND later.rule = original.rule
                    AND later.is_replacement AND later.occurred_at > chosen.occurred_at),
            coalesce(held.saying, inbox.saying), saying.expires_at
        FROM unnest(
            \(chosen.map(\.number)), \(chosen.map(\.notification)), \(chosen.map(\.asked.rule)),
            \(chosen.map(\.asked.occurredAt.date))
        ) AS chosen (number, notification, rule, occurred_at)
            \(RevocationSelection.lastDecision(of: "chosen.notification"))
            JOIN rules.event ON event.key = last.event
            JOIN rules.event_item AS original ON (original.event, original.rule) = (last.event, chosen.rule)
            LEFT JOIN rules.held ON held.notification = chosen.notification AND held.leaving IS NULL
            LEFT JOIN rules.inbox ON inbox.notification = chosen.notification
            LEFT JOIN rules.saying ON saying.id = coalesce(held.saying, inbox.saying)
        ORDER BY chosen.number, last.user_id
        """
    }

    private static let isRevoked: SQL = """
        EXISTS (
            SELECT FROM rules.revocation
            WHERE revocation.app = event.app AND coalesce(revocation.user_id = last.user_id, true)
                AND (revocation.event_id = event.id
                    OR revocation.item = original.item AND revocation.until_at >= original.occurred_at)
        ) OR EXISTS (
            SELECT FROM rules.revocation
            WHERE revocation.notification = chosen.notification AND coalesce(revocation.user_id = last.user_id, true))
        """

    /// Selects the pushes that known events have stored.
    static func stored(_ events: [UUID]) -> SQL {
        """
        SELECT event, rule, user_id, original, expires_at, at FROM rules.replacement
        WHERE event = ANY(\(events)) ORDER BY event, user_id
        """
    }

    /// Copies the stored texts with new content: the copy keeps the terms, the event and the trace of the original.
    static func insertRendered(_ words: [DecisionWrites.ReplacedWords], now: Timestamp) throws(WireError) -> SQL {
        var rows: [UUID: (old: UUID, content: String, preview: String?)] = [:]
        for one in words {
            guard let old = one.original.rendered, let id = one.renderedID, rows[id] == nil else { continue }
            rows[id] = (
                old, try WireCoding.text(one.rendered.content),
                try one.rendered.preview.map { preview throws(WireError) in try WireCoding.text(preview) }
            )
        }
        let ids = rows.keys.sorted { $0.uuidString < $1.uuidString }
        return """
            INSERT INTO rules.saying
                (id, app, rule, lane, content, preview, mutes, expires_at, delivery, correlation, traceparent, devices, said_at)
            SELECT new.id, old.app, old.rule, old.lane, new.content::json, new.preview::json, old.mutes, old.expires_at,
                old.delivery, old.correlation, old.traceparent, old.devices, \(now.date)
            FROM unnest(
                \(ids), \(ids.compactMap { rows[$0]?.old }), \(ids.compactMap { rows[$0]?.content }),
                \(ids.map { rows[$0]?.preview })
            ) AS new (id, old, content, preview) JOIN rules.saying AS old ON old.id = new.old
            ORDER BY new.id
            ON CONFLICT DO NOTHING
            """
    }

    static func updateHeld(_ words: [DecisionWrites.ReplacedWords]) throws(WireError) -> SQL {
        let words = words.filter { $0.original.state == .waiting && $0.renderedID != nil }
        return """
            UPDATE rules.held SET saying = new.saying, entry = coalesce(new.entry::json, held.entry)
            FROM unnest(
                \(words.map(\.original.notification)), \(words.compactMap(\.renderedID)), \(try words.entries)
            ) AS new (notification, saying, entry)
            WHERE held.notification = new.notification AND held.leaving IS NULL
            """
    }

    static func updateEntries(_ words: [DecisionWrites.ReplacedWords]) throws(WireError) -> SQL {
        let words = words.filter { $0.original.state == .waiting && $0.entry != nil }
        let values = try words.map { one throws(WireError) in try WireCoding.text(one.entry?.values ?? .null) }
        return """
            UPDATE rules.digest_item SET details = new.details::json
            FROM unnest(\(words.map(\.original.notification)), \(values)) AS new (notification, details)
            WHERE digest_item.notification = new.notification AND NOT digest_item.is_told
            """
    }

    static func updateInbox(_ words: [DecisionWrites.ReplacedWords], now: Timestamp) -> SQL {
        let words = words.filter { $0.original.isInInbox && $0.renderedID != nil }
        return """
            UPDATE rules.inbox
            SET saying = new.saying, changed_at = \(now.date), written = pg_current_xact_id()
            FROM unnest(\(words.map(\.original.notification)), \(words.compactMap(\.renderedID)))
                AS new (notification, saying)
            WHERE inbox.notification = new.notification
            """
    }

    static func insertPushes(_ pushes: [DecisionWrites.ReplacingPush], now: Timestamp) -> SQL {
        """
        INSERT INTO rules.replacement
            (notification, app, user_id, event, rule, original, identifier, expires_at, at)
        SELECT notification, app, user_id, event, rule, original, identifier, expires_at, \(now.date)
        FROM unnest(
            \(pushes.map(\.notification)), \(pushes.map(\.person.app.rawValue)),
            \(pushes.map(\.person.user.rawValue)), \(pushes.map(\.event)), \(pushes.map(\.rule)),
            \(pushes.map(\.original.notification)), \(pushes.map(\.identifier)), \(pushes.map(\.expiresAt?.date))
        ) AS new (notification, app, user_id, event, rule, original, identifier, expires_at) ORDER BY notification
        ON CONFLICT DO NOTHING
        """
    }
}

extension DecisionWrites.ReplacedWords {
    /// The id of the new texts. Users share it if they had the same texts and get the same new texts.
    fileprivate var renderedID: UUID? {
        original.rendered.map { DerivedID.uuid5($0, ["replacement", rendered.correlation, localization]) }
    }
}

extension [DecisionWrites.ReplacedWords] {
    fileprivate var entries: [String?] {
        get throws(WireError) {
            try map { one throws(WireError) in
                try one.entry.map { entry throws(WireError) in try WireCoding.text(entry) }
            }
        }
    }
}

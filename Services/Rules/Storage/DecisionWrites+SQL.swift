import FoundationEssentials
import Postgres
import PushProtocol
import RuleEngine
import RuleLanguage

extension DecisionWrites {
    func sql() throws(WireError) -> SQL {
        """
        WITH decided AS (\(insertDecisions)), said AS (\(try insertSayings())), kept AS (\(insertInbox)),
            waiting AS (\(try insertHeld())), reported AS (\(insertReports))
        \(try updateLogs())
        """
    }

    private var insertDecisions: SQL {
        """
        INSERT INTO rules.decision (notification, step, event, rule, user_id, decided_at, answer, reason, until, rule_set)
        SELECT notification, step, event, rule, user_id, \(decidedAt.date), answer, reason, until, rule_set FROM unnest(
            \(decisions.map(\.notification)), \(decisions.map(\.step)), \(decisions.map(\.event)),
            \(decisions.map(\.rule)), \(decisions.map(\.person.user.rawValue)),
            \(decisions.map(\.decision.answer.word)), \(decisions.map(\.decision.reason.rawValue)),
            \(decisions.map(\.decision.answer.until?.date)), \(decisions.map(\.ruleSet))
        ) AS new (notification, step, event, rule, user_id, answer, reason, until, rule_set) ORDER BY notification
        ON CONFLICT DO NOTHING
        """
    }

    private func insertSayings() throws(WireError) -> SQL {
        let contents = try renderedNotifications.map { one throws(WireError) in try WireCoding.text(one.content) }
        let previews = try renderedNotifications.map { one throws(WireError) in
            try one.preview.map { preview throws(WireError) in try WireCoding.text(preview) }
        }
        // As JSON, because Postgres arrays are rectangular. Without NUL, which Postgres text cannot contain.
        let mutes = try renderedNotifications.map { one throws(WireError) in
            try WireCoding.text(one.mutes.map { $0.replacing("\0", with: "") })
        }
        let devices = try renderedNotifications.map { one throws(WireError) in
            try one.devices.map { devices throws(WireError) in try WireCoding.text(devices) }
        }
        return """
            INSERT INTO rules.saying
                (id, app, rule, lane, content, preview, mutes, expires_at, delivery, correlation, traceparent, devices, scope, is_to_channels, said_at)
            SELECT id, app, rule, lane, content::json, preview::json, ARRAY(SELECT json_array_elements_text(mutes::json)), expires_at,
                delivery, correlation, traceparent, devices::json, scope, is_to_channels, \(decidedAt.date)
            FROM unnest(
                \(renderedNotifications.map(\.id)), \(renderedNotifications.map(\.app.rawValue)), \(renderedNotifications.map(\.rule)),
                \(renderedNotifications.map(\.lane.rawValue)), \(contents), \(previews), \(mutes), \(renderedNotifications.map(\.expiresAt?.date)),
                \(renderedNotifications.map(\.delivery?.rawValue)), \(renderedNotifications.map(\.correlation)), \(renderedNotifications.map { $0.traceparent?.replacing("\0", with: "") }), \(devices),
                \(renderedNotifications.map { $0.scope?.replacing("\0", with: "") }), \(renderedNotifications.map(\.isToChannels))
            ) AS new (id, app, rule, lane, content, preview, mutes, expires_at, delivery, correlation, traceparent, devices, scope, is_to_channels) ORDER BY id
            ON CONFLICT DO NOTHING
            """
    }

    private var insertInbox: SQL {
        """
        INSERT INTO rules.inbox (notification, app, user_id, saying, thread, at, read_at)
        SELECT notification, app, user_id, saying, thread, \(decidedAt.date), read_at FROM unnest(
            \(inbox.map(\.notification)), \(inbox.map(\.person.app.rawValue)), \(inbox.map(\.person.user.rawValue)),
            \(inbox.map(\.rendered)), \(inbox.map { $0.thread?.replacing("\0", with: "") }),
            \(inbox.map { $0.isRead ? decidedAt.date : nil })
        ) AS new (notification, app, user_id, saying, thread, read_at) ORDER BY notification
        ON CONFLICT DO NOTHING
        """
    }

    private func insertHeld() throws(WireError) -> SQL {
        let entries = try held.map { one throws(WireError) in
            try one.entry.map { entry throws(WireError) in try WireCoding.text(entry) }
        }
        return """
            INSERT INTO rules.held
                (notification, app, user_id, saying, event, badge, since, due_at, quiet_holds, step, kind, item, said_at, in_inbox, entry)
            SELECT notification, app, user_id, saying, event, badge, since, due_at, quiet_holds, 1, kind, item, said_at, in_inbox, entry::json
            FROM unnest(
                \(held.map(\.notification)), \(held.map(\.person.app.rawValue)), \(held.map(\.person.user.rawValue)),
                \(held.map(\.rendered)), \(held.map(\.event)), \(held.map(\.badge)),
                \(held.map { ($0.since ?? decidedAt).date }), \(held.map(\.dueAt.date)),
                \(held.map { $0.isByQuietHours ? 1 : 0 }), \(held.map(\.kind.rawValue)), \(held.map(\.item)),
                \(held.map(\.saidAt?.date)), \(held.map(\.isKept)), \(entries)
            ) AS new (notification, app, user_id, saying, event, badge, since, due_at, quiet_holds, kind, item, said_at, in_inbox, entry)
            ORDER BY notification
            ON CONFLICT DO NOTHING
            """
    }

    private var insertReports: SQL {
        """
        INSERT INTO rules.report (notification, app, user_id, rule, correlation, due_at, at)
        SELECT notification, app, user_id, rule, correlation, \(decidedAt.date), \(decidedAt.date) FROM unnest(
            \(reports.map(\.notification)), \(reports.map(\.person.app.rawValue)),
            \(reports.map(\.person.user.rawValue)), \(reports.map(\.rule)), \(reports.map(\.correlation))
        ) AS new (notification, app, user_id, rule, correlation) ORDER BY notification
        ON CONFLICT DO NOTHING
        """
    }

    private func updateLogs() throws(WireError) -> SQL { try DecisionWrites.updateLogs(capHistory) }

    static func updateLogs(_ capHistory: [PersonKey: [String: [Timestamp]]]) throws(WireError) -> SQL {
        let keys = capHistory.keys.sorted()
        let texts = try keys.map { key throws(WireError) in try WireCoding.text(capHistory[key, default: [:]]) }
        return """
            UPDATE rules.person SET logs = new.logs::jsonb FROM unnest(
                \(keys.map(\.app.rawValue)), \(keys.map(\.user.rawValue)), \(texts)
            ) AS new (app, user_id, logs) WHERE (person.app, person.user_id) = (new.app, new.user_id)
            """
    }
}

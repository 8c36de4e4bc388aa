import FoundationEssentials
import Postgres
import PushProtocol

/// Everything that one batch of decisions leaves behind, written in one statement.
struct RulingWrites: Sendable {
    var decisions: [Ruled] = []
    var decidedAt: Timestamp
    var sayings: [Saying] = []
    var inbox: [Kept] = []
    var held: [Held] = []
    /// Logs that were charged, by person.
    var logs: [PersonKey: [String: [Timestamp]]] = [:]

    /// A notification in an inbox.
    struct Kept: Sendable {
        var notification: UUID
        var person: PersonKey
        var saying: UUID
        var thread: String?
        var isRead = false
    }

    /// A notification that waits.
    struct Held: Sendable {
        var notification: UUID
        var person: PersonKey
        var saying: UUID
        var event: UUID
        var badge: Int?
        var dueAt: Timestamp
        var isByQuietHours: Bool
    }

    init(decidedAt: Timestamp) { self.decidedAt = decidedAt }

    var isEmpty: Bool { decisions.isEmpty }

    func sql() throws(WireError) -> SQL {
        """
        WITH decided AS (\(insertDecisions)), said AS (\(try insertSayings())), kept AS (\(insertInbox)),
            waiting AS (\(insertHeld))
        \(try updateLogs())
        """
    }

    private var insertDecisions: SQL {
        """
        INSERT INTO rules.decision (notification, step, event, rule, user_id, decided_at, answer, reason, until, rule_set)
        SELECT notification, step, event, rule, user_id, \(decidedAt.date), answer, reason, until, rule_set FROM unnest(
            \(decisions.map(\.notification)), \(decisions.map(\.step)), \(decisions.map(\.event)),
            \(decisions.map(\.rule)), \(decisions.map(\.person.user.rawValue)),
            \(decisions.map(\.judgement.answer.word)), \(decisions.map(\.judgement.reason.rawValue)),
            \(decisions.map(\.judgement.answer.until?.date)), \(decisions.map(\.ruleSet))
        ) AS new (notification, step, event, rule, user_id, answer, reason, until, rule_set) ORDER BY notification
        ON CONFLICT DO NOTHING
        """
    }

    private func insertSayings() throws(WireError) -> SQL {
        var contents: [String] = []
        for saying in sayings {
            contents.append(String(decoding: try WireCoding.encode(saying.content), as: UTF8.self))
        }
        let mutes = try texts(sayings.map(\.mutes))
        return """
            INSERT INTO rules.saying
                (id, app, rule, lane, content, mutes, expires_at, delivery, correlation, traceparent, said_at)
            SELECT id, app, rule, lane, content::json, ARRAY(SELECT json_array_elements_text(mutes::json)), expires_at,
                delivery, correlation, traceparent, \(decidedAt.date)
            FROM unnest(
                \(sayings.map(\.id)), \(sayings.map(\.app.rawValue)), \(sayings.map(\.rule)),
                \(sayings.map(\.lane.rawValue)), \(contents), \(mutes), \(sayings.map(\.expiresAt?.date)),
                \(sayings.map(\.delivery?.rawValue)), \(sayings.map(\.correlation)), \(sayings.map { $0.traceparent?.replacing("\0", with: "") })
            ) AS new (id, app, rule, lane, content, mutes, expires_at, delivery, correlation, traceparent) ORDER BY id
            ON CONFLICT DO NOTHING
            """
    }

    /// Lists of texts, each as JSON; Postgres has no lists of lists of different length, and no NUL in a text.
    private func texts(_ lists: [[String]]) throws(WireError) -> [String] {
        var texts: [String] = []
        for list in lists {
            let clean = list.map { $0.replacing("\0", with: "") }
            texts.append(String(decoding: try WireCoding.encode(clean), as: UTF8.self))
        }
        return texts
    }

    private var insertInbox: SQL {
        """
        INSERT INTO rules.inbox (notification, app, user_id, saying, thread, at, read_at)
        SELECT notification, app, user_id, saying, thread, \(decidedAt.date), read_at FROM unnest(
            \(inbox.map(\.notification)), \(inbox.map(\.person.app.rawValue)), \(inbox.map(\.person.user.rawValue)),
            \(inbox.map(\.saying)), \(inbox.map { $0.thread?.replacing("\0", with: "") }),
            \(inbox.map { $0.isRead ? decidedAt.date : nil })
        ) AS new (notification, app, user_id, saying, thread, read_at) ORDER BY notification
        ON CONFLICT DO NOTHING
        """
    }

    private var insertHeld: SQL {
        """
        INSERT INTO rules.held (notification, app, user_id, saying, event, badge, since, due_at, quiet_holds, step)
        SELECT notification, app, user_id, saying, event, badge, \(decidedAt.date), due_at, quiet_holds, 1 FROM unnest(
            \(held.map(\.notification)), \(held.map(\.person.app.rawValue)), \(held.map(\.person.user.rawValue)),
            \(held.map(\.saying)), \(held.map(\.event)), \(held.map(\.badge)), \(held.map(\.dueAt.date)),
            \(held.map { $0.isByQuietHours ? 1 : 0 })
        ) AS new (notification, app, user_id, saying, event, badge, due_at, quiet_holds) ORDER BY notification
        ON CONFLICT DO NOTHING
        """
    }

    private func updateLogs() throws(WireError) -> SQL { try RulingWrites.updateLogs(logs) }

    static func updateLogs(_ logs: [PersonKey: [String: [Timestamp]]]) throws(WireError) -> SQL {
        let keys = logs.keys.sorted()
        var texts: [String] = []
        for key in keys {
            texts.append(String(decoding: try WireCoding.encode(logs[key, default: [:]]), as: UTF8.self))
        }
        return """
            UPDATE rules.person SET logs = new.logs::jsonb FROM unnest(
                \(keys.map(\.app.rawValue)), \(keys.map(\.user.rawValue)), \(texts)
            ) AS new (app, user_id, logs) WHERE (person.app, person.user_id) = (new.app, new.user_id)
            """
    }
}

extension Judgement.Answer {
    /// As it is stored.
    var word: String {
        switch self {
        case .push: "push"
        case .pushQuietly: "push-quietly"
        case .hold: "hold"
        case .inbox: "inbox"
        case .drop: "drop"
        }
    }

    /// - Returns: `nil` for a word that is none.
    init?(word: String, until: Timestamp?) {
        switch (word, until) {
        case ("push", _): self = .push
        case ("push-quietly", _): self = .pushQuietly
        case ("hold", let until?): self = .hold(until: until)
        case ("inbox", _): self = .inbox
        case ("drop", _): self = .drop
        default: return nil
        }
    }

    var until: Timestamp? {
        switch self {
        case .hold(let until): until
        case .push, .pushQuietly, .inbox, .drop: nil
        }
    }
}

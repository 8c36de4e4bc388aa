import FoundationEssentials
import Postgres
import PushProtocol

/// A held notification, or one that is released and not yet published.
struct HeldItem: Sendable {
    var rendered: RenderedNotification
    var recipient: Notification.Recipient
    var event: UUID
    var since: Timestamp
    var quietHolds: Int
    var step: Int
    var kind: HeldKind
    var item: String?
    var saidAt: Timestamp?
    /// Whether the inbox has the notification, or never gets it.
    var isKept: Bool
    var entry: Digest.Entry?
    /// The answer that released it; `nil` while it is held.
    var leaving: RuleDecision.Answer?
    /// When it is decided again; `nil` once it is released.
    var dueAt: Timestamp?
    var isOver = false

    var person: PersonKey { PersonKey(app: rendered.app, user: recipient.user) }

    var release: HeldStore.Release? {
        leaving.map { HeldStore.Release(rendered: rendered, recipient: recipient, isQuiet: $0 == .pushQuietly) }
    }

    func input(_ rule: Rule) -> DecisionInput {
        DecisionInput(
            policy: rule.policy, isUserVisible: true, mutes: rendered.mutes, thread: rendered.content.thread,
            expiresAt: expiresAt(rule), since: since, quietHolds: quietHolds, isSummary: kind == .summary,
            isSendable: rendered.isSendable)
    }

    /// The expiry. The lifetime of a scheduled notification begins when it is due.
    private func expiresAt(_ rule: Rule) -> Timestamp? {
        guard kind == .scheduled, let after = rule.how.expiresAfter else { return rendered.expiresAt }
        return min(since + after, rendered.expiresAt ?? since + after)
    }

    /// The inbox item to add now that the notification is due.
    ///
    /// - Parameter isWanted: whether the rule and the user's settings allow an inbox item.
    func kept(_ decision: RuleDecision, isWanted: Bool) -> DecisionWrites.Kept? {
        guard !isKept, decision.answer.isKept, decision.reason != .gathered, isWanted else { return nil }
        return DecisionWrites.Kept(
            notification: recipient.notification, person: person, rendered: rendered.id, thread: rendered.content.thread
        )
    }

    /// The item to add to a digest.
    func gathered(
        _ decision: RuleDecision, _ rule: Rule, _ defaults: AppDefaults, now: Timestamp
    ) -> DecisionWrites.Gathered? {
        guard decision.answer == .digest, let entry, let digest = rule.policy.digest else { return nil }
        return DecisionWrites.Gathered(
            person: person, rule: rendered.rule, bucket: entry.bucket,
            item: item ?? recipient.notification.uuidString.lowercased(), notification: recipient.notification,
            event: event, correlation: rendered.correlation, values: entry.values, saidAt: saidAt ?? since, from: now,
            end: rendered.expiresAt, digest: digest, zone: defaults.zone)
    }

    mutating func take(_ decision: RuleDecision, _ rule: Rule?, spread: Duration) {
        step += 1
        switch decision.answer {
        case .push, .pushQuietly:
            leaving = decision.answer
            if let rule { rendered.expiresAt = expiresAt(rule) }
        case .hold:
            dueAt = decision.dueAt(recipient.notification, spread: spread)
            if decision.reason == .quietHours { quietHolds += 1 }
        case .digest, .inbox, .drop: isOver = true
        }
    }

    /// The order of decisions in a batch: the longest held first, so that it gets a free place under a cap.
    static func precedes(_ a: HeldItem, _ b: HeldItem) -> Bool {
        (a.since, a.recipient.notification.uuidString) < (b.since, b.recipient.notification.uuidString)
    }
}

extension HeldItem {
    /// - Parameter sayings: rendered notifications that are decoded already.
    init(_ row: PostgresRow, known renderedNotifications: [UUID: RenderedNotification]) throws {
        let rendered = try row.decode(UUID.self, at: 3)
        self.init(
            rendered: try renderedNotifications[rendered]
                ?? RenderedNotification(row, id: rendered, app: row.decode(AppID.self, at: 1), from: 15),
            recipient: Notification.Recipient(
                user: try row.decode(UserID.self, at: 2), notification: try row.decode(UUID.self, at: 0),
                badge: try row.decode(Int32?.self, at: 5).map(Int.init)),
            event: try row.decode(UUID.self, at: 4), since: Timestamp(try row.decode(Date.self, at: 6)),
            quietHolds: Int(try row.decode(Int32.self, at: 8)), step: Int(try row.decode(Int32.self, at: 9)),
            kind: HeldKind(rawValue: try row.decode(String.self, at: 10)) ?? .held,
            item: try row.decode(String?.self, at: 11), saidAt: try row.decode(Date?.self, at: 12).map(Timestamp.init),
            isKept: try row.decode(Bool.self, at: 13),
            entry: try row.decode(String?.self, at: 14).map { text throws(WireError) in
                try WireCoding.decodeStored(Digest.Entry.self, from: text)
            }, leaving: try row.decode(String?.self, at: 7).flatMap { RuleDecision.Answer(word: $0, until: nil) })
    }
}

extension RenderedNotification {
    /// Reads rule, lane, content, mutes, expires_at, delivery, correlation, traceparent and preview, starting at
    /// `column`.
    init(_ row: PostgresRow, id: UUID, app: AppID, from column: Int) throws {
        func content(_ text: String) throws(WireError) -> Content {
            try WireCoding.decodeStored(Content.self, from: text)
        }
        self.init(
            id: id, app: app, rule: try row.decode(String.self, at: column),
            lane: try row.decode(Lane.self, at: column + 1),
            content: try content(try row.decode(String.self, at: column + 2)),
            preview: try row.decode(String?.self, at: column + 8).map { text throws(WireError) in try content(text) },
            mutes: try row.decode([String].self, at: column + 3),
            expiresAt: try row.decode(Date?.self, at: column + 4).map(Timestamp.init),
            delivery: try row.decode(String?.self, at: column + 5).flatMap(DeliveryPolicy.init(rawValue:)),
            correlation: try row.decode(String.self, at: column + 6),
            traceparent: try row.decode(String?.self, at: column + 7))
    }
}

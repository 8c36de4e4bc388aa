package import FoundationEssentials
package import PushProtocol
package import RuleLanguage

/// A held notification, or one that is released and not yet published.
package struct HeldItem: Sendable {
    package var rendered: RenderedNotification
    package var recipient: Notification.Recipient
    package var event: UUID
    package var since: Timestamp
    package var quietHolds: Int
    package var step: Int
    package var kind: HeldKind
    package var item: String?
    package var saidAt: Timestamp?
    /// Whether the inbox has the notification, or never gets it.
    package var isKept: Bool
    package var entry: Digest.Entry?
    /// The answer that released it; `nil` while it is held.
    package var leaving: RuleDecision.Answer?
    /// When it is decided again; `nil` once it is released.
    package var dueAt: Timestamp?
    /// When it was due at the last decision; `nil` for one that no row holds. For metrics.
    package var wasDueAt: Timestamp?
    package var isOver = false

    package init(
        rendered: RenderedNotification, recipient: Notification.Recipient, event: UUID, since: Timestamp,
        quietHolds: Int, step: Int, kind: HeldKind, item: String? = nil, saidAt: Timestamp? = nil, isKept: Bool,
        entry: Digest.Entry? = nil, leaving: RuleDecision.Answer? = nil, dueAt: Timestamp? = nil,
        wasDueAt: Timestamp? = nil, isOver: Bool = false
    ) {
        self.rendered = rendered
        self.recipient = recipient
        self.event = event
        self.since = since
        self.quietHolds = quietHolds
        self.step = step
        self.kind = kind
        self.item = item
        self.saidAt = saidAt
        self.isKept = isKept
        self.entry = entry
        self.leaving = leaving
        self.dueAt = dueAt
        self.wasDueAt = wasDueAt
        self.isOver = isOver
    }

    package var itemKey: ItemKey? { item.map { ItemKey(app: rendered.app, item: $0) } }

    /// Whether a newer state of its surface was decided.
    package func isOvertaken(_ newest: [ItemKey: Timestamp]) -> Bool {
        guard let item = itemKey, let saidAt, let state = newest[item] else { return false }
        return state > saidAt
    }

    /// Drops the notification without a decision by its rule.
    package mutating func drop(_ reason: RuleDecision.Cause, _ writes: inout DecisionWrites) {
        writes.decisions.append(
            DecisionRecord(
                notification: recipient.notification, step: step, event: event, rule: rendered.rule, person: person,
                decision: RuleDecision(answer: .drop, reason: reason)))
        isOver = true
    }

    package var person: PersonKey { PersonKey(app: rendered.app, user: recipient.user) }

    /// Whether the push is without sound.
    package var isQuiet: Bool { leaving == .pushQuietly }

    /// The values that determine the decision on it, beside the rule and the user.
    package struct Terms: Codable, Hashable, Sendable {
        var isScheduled: Bool
        var isSummary: Bool
        var since: Timestamp
        var quietHolds: Int
        var mutes: [String]
        var thread: String?
        var expiresAt: Timestamp?
        var isSendable: Bool

        func input(_ rule: Rule) -> DecisionInput {
            DecisionInput(
                policy: rule.policy, isUserVisible: rule.isUserVisible, mutes: mutes, thread: thread,
                expiresAt: expiresAt(rule),
                since: since, quietHolds: quietHolds, isSummary: isSummary, isSendable: isSendable)
        }

        /// The expiry. The lifetime of a scheduled notification begins when it is due.
        func expiresAt(_ rule: Rule) -> Timestamp? {
            guard isScheduled, let after = rule.how.expiresAfter else { return expiresAt }
            return min(since + after, expiresAt ?? since + after)
        }
    }

    var terms: Terms {
        Terms(
            isScheduled: kind == .scheduled, isSummary: kind == .summary, since: since, quietHolds: quietHolds,
            mutes: rendered.mutes, thread: rendered.content.thread, expiresAt: rendered.expiresAt,
            isSendable: rendered.isSendable)
    }

    /// Decides the notification again, and adds the effects to `writes`.
    ///
    /// - Parameter found: its rule, and the rule's set; `nil`: the app no longer has the rule.
    package mutating func release(
        by found: (rule: Rule, set: RuleSet)?, _ people: inout [PersonKey: Person], _ writes: inout DecisionWrites,
        spread: Duration
    ) {
        let now = writes.decidedAt
        let decision =
            found.map { found in
                DecisionEngine(defaults: found.set.defaults, now: now).decide(
                    terms.input(found.rule), &people[person, default: Person()])
            } ?? RuleDecision(answer: .inbox, reason: .ruleGone)
        writes.decisions.append(
            DecisionRecord(
                notification: recipient.notification, step: step, event: event, rule: rendered.rule, person: person,
                decision: decision, ruleSet: found?.set.version))
        if let gathered = found.flatMap({ gathered(decision, $0.rule, $0.set.defaults, now: now) }) {
            writes.gathered.append(gathered)
        }
        let settings = people[person]?.settings ?? PersonalSettings()
        let isWanted = found.map { $0.set.defaults.keeps($0.rule.policy, for: settings) } ?? true
        if let kept = kept(decision, isWanted: isWanted) { writes.inbox.append(kept) }
        isKept = true
        take(decision, found?.rule, spread: spread)
    }

    /// The inbox item to add now that the notification is due.
    ///
    /// - Parameter isWanted: whether the rule and the user's settings allow an inbox item.
    private func kept(_ decision: RuleDecision, isWanted: Bool) -> DecisionWrites.Kept? {
        guard !isKept, decision.answer.isKept, decision.reason != .gathered, isWanted else { return nil }
        return DecisionWrites.Kept(
            notification: recipient.notification, person: person, rendered: rendered.id, thread: rendered.content.thread
        )
    }

    /// The item to add to a digest.
    private func gathered(
        _ decision: RuleDecision, _ rule: Rule, _ defaults: AppDefaults, now: Timestamp
    ) -> DecisionWrites.Gathered? {
        guard decision.answer == .digest, let entry, let digest = rule.policy.digest else { return nil }
        return DecisionWrites.Gathered(
            key: BucketKey(person: person, bucket: entry.bucket), rule: rendered.rule,
            item: Bucket.Item(
                name: item ?? recipient.notification.uuidString.lowercased(), notification: recipient.notification,
                event: event, correlation: rendered.correlation, values: entry.values, saidAt: saidAt ?? since,
                from: now, end: rendered.expiresAt),
            digest: digest, zone: defaults.zone)
    }

    private mutating func take(_ decision: RuleDecision, _ rule: Rule?, spread: Duration) {
        step += 1
        switch decision.answer {
        case .push, .pushQuietly:
            leaving = decision.answer
            if let rule { rendered.expiresAt = terms.expiresAt(rule) }
        case .hold:
            dueAt = decision.dueAt(recipient.notification, spread: spread)
            if decision.reason == .quietHours { quietHolds += 1 }
        case .digest, .inbox, .drop: isOver = true
        }
    }

    /// The order of decisions in a batch: the longest held first, so that it gets a free place under a cap.
    package static func precedes(_ a: HeldItem, _ b: HeldItem) -> Bool {
        (a.since, a.recipient.notification.uuidString) < (b.since, b.recipient.notification.uuidString)
    }
}

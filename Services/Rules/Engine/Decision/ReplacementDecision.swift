package import FoundationEssentials
package import PushProtocol
package import RuleLanguage

extension NotificationDraft {
    /// A notification that was pushed longer ago is not pushed again: phones seldom show it still.
    package static let replacementReach = Duration.seconds(7 * 86_400)

    /// Decides about new texts for one notification; `nil` for a draft that replaces nothing.
    ///
    /// The push has no sound if a phone may have shown the original. It charges no cap.
    func replacementDecision(_ person: Person, _ engine: DecisionEngine) -> RuleDecision? {
        guard let original = replacement?.original else { return nil }
        func drop(_ reason: RuleDecision.Cause) -> RuleDecision { RuleDecision(answer: .drop, reason: reason) }
        if original.isRevoked { return drop(.revoked) }
        if original.isOvertaken { return drop(.overtaken) }
        switch original.state {
        case .gone: return drop(.nothingToReplace)
        case .waiting, .kept: return drop(.wordsReplaced)
        case .pushed: break
        }
        let isOver = rendered.expiresAt.map { $0 <= engine.now } ?? false
        if isOver || original.decidedAt + Self.replacementReach <= engine.now { return drop(.tooLate) }
        let isRemoved = engine.defaults.keeps(policy, for: person.settings) && !original.isInInbox
        if original.isRead || isRemoved { return drop(.alreadyRead) }
        let input = DecisionInput(policy: policy, isUserVisible: true, mutes: rendered.mutes, since: engine.now)
        if !engine.defaults.isCritical(policy), let refusal = engine.preferences(input, person.settings) {
            return drop(refusal)
        }
        guard rendered.isSendable else { return drop(.unsendable) }
        return RuleDecision(answer: original.isAnswered ? .pushQuietly : .push, reason: .replacement)
    }

    /// The texts with the identifier of the original, so that a phone shows one notification.
    package var identified: RenderedNotification {
        guard let identifier = replacedIdentifier else { return rendered }
        var identified = rendered
        identified.content.collapseKey = identifier
        identified.preview?.collapseKey = identifier
        return identified
    }

    /// The original, if the draft's push replaces it. Senders skip its copies that they have not sent yet.
    package func revokedOriginal(_ answers: [UUID: RuleDecision.Answer]) -> UUID? {
        guard let original = replacement?.original, let recipient = recipients.first else { return nil }
        switch answers[recipient.notification] {
        case .push, .pushQuietly: return original.notification
        case .hold, .digest, .inbox, .drop, nil: return nil
        }
    }
}

extension EventCase {
    /// Checks that the message of a replacement fits, before its recipients are known.
    ///
    /// - Throws: `WireError.tooLarge` or `.tooDeep`.
    package func checkReplacementSizes() throws(WireError) {
        for draft in drafts where draft.replacement != nil {
            guard let anyone = UserID(rawValue: "anyone") else { continue }
            let recipient = Notification.Recipient(user: anyone, notification: draft.notificationID(of: anyone))
            for notification in draft.notifications(to: [recipient], quietly: false) {
                _ = try notification.boundedWireBody()
            }
        }
    }
}

extension DecisionWrites {
    /// New texts for a held notification, an entry of a digest or an inbox item.
    package struct ReplacedWords: Sendable {
        package var original: ReplacedNotification
        package var rendered: RenderedNotification
        /// The language and time zone of the texts.
        package var localization: String
        package var entry: Digest.Entry?
    }

    /// A push that replaces the copy of an earlier one.
    package struct ReplacingPush: Sendable {
        package var notification: UUID
        package var event: UUID
        package var rule: String
        package var person: PersonKey
        package var original: ReplacedNotification
        package var identifier: String
        package var expiresAt: Timestamp?
    }

    /// Adds the effects of new texts. The inbox item gets them for every reason but these: a revocation, a later
    /// replacement, a completed item, and texts that no message can carry.
    mutating func replace(_ draft: NotificationDraft, _ decided: DecisionRecord) {
        guard let original = draft.replacement?.original else { return }
        switch decided.decision.reason {
        case .revoked, .overtaken, .done, .nothingToReplace, .unsendable: return
        default: break
        }
        replacedWords.append(
            ReplacedWords(
                original: original, rendered: draft.rendered, localization: draft.localization,
                entry: draft.terms.entry))
        guard decided.decision.reason == .replacement, let identifier = draft.replacedIdentifier else { return }
        replacingPushes.append(
            ReplacingPush(
                notification: decided.notification, event: decided.event, rule: decided.rule, person: decided.person,
                original: original, identifier: identifier, expiresAt: draft.rendered.expiresAt))
    }
}

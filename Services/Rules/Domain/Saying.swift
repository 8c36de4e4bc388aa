import FoundationEssentials
import PushProtocol

/// What one rule says about one event, rendered, to users who each have an id for it.
struct Saying: Hashable, Sendable {
    /// Derived from event and rule.
    var id: UUID
    var app: AppID
    var rule: String
    var lane: Lane
    var content: Content
    var mutes: [String]
    var expiresAt: Timestamp?
    var delivery: DeliveryPolicy?
    /// The event's id.
    var correlation: String
    var traceparent: String?

    /// The messages that carry it to these users, each to at most ``Notification/maximumRecipients``.
    ///
    /// - Parameter id: of the message with this index and these recipients.
    func notifications(
        to recipients: [Notification.Recipient], quietly: Bool, id: (Int, [Notification.Recipient]) -> UUID
    ) -> [Notification] {
        let size = Notification.maximumRecipients
        let content = quietly ? content.quiet : content
        return stride(from: 0, to: recipients.count, by: size).enumerated().map { index, start in
            let recipients = Array(recipients[start..<min(start + size, recipients.count)])
            return Notification(
                trace: Trace(
                    id: id(index, recipients), correlation: correlation, causation: correlation,
                    traceparent: traceparent),
                app: app, rule: rule, lane: lane, content: content, expiresAt: expiresAt, delivery: delivery,
                recipients: recipients)
        }
    }
}

extension Content {
    /// A number as an icon can carry it.
    static func badge(_ count: Int) -> Int { min(count, 99_999) }

    /// The same without sound, lighting no screen.
    var quiet: Content {
        var quiet = self
        quiet.sound = nil
        quiet.interruptionLevel = .passive
        return quiet
    }
}

/// One event and everything that is said about it, to be judged user by user.
struct EventCase: Sendable {
    var record: EventRecord
    var house: HouseRules
    var signals: [Signal]
    var statements: [Statement]

    /// A saying and its users.
    struct Statement: Sendable {
        var saying: Saying
        var policy: Rule.Policy
        var isNoise: Bool
        var countsUnread: Bool
        var recipients: [Notification.Recipient]
        /// The ids of its messages are made of these.
        var source: String
    }

    init(
        _ event: DomainEvent, ruleSet: RuleSet, arrivedAt arrival: Timestamp, drafts: [NotificationDraft],
        signals: [Signal] = []
    ) {
        record = EventRecord(event, ruleSet: ruleSet.version, arrivedAt: arrival)
        house = ruleSet.house
        self.signals = signals
        statements = drafts.map { $0.statement(about: event, arrivedAt: arrival) }
    }
}

extension EventCase.Statement {
    /// The messages to those of its users whose answer is to push.
    ///
    /// - Parameter unread: how much each person has not read.
    func notifications(_ answers: [UUID: Judgement.Answer], unread: [PersonKey: Int]) -> [Notification] {
        func users(_ answer: Judgement.Answer) -> [Notification.Recipient] {
            recipients.filter { answers[$0.notification] == answer }.map { recipient in
                guard countsUnread else { return recipient }
                var recipient = recipient
                recipient.badge = unread[PersonKey(app: saying.app, user: recipient.user)].map(Content.badge) ?? 0
                return recipient
            }
        }
        return notifications(to: users(.push), quietly: false) + notifications(to: users(.pushQuietly), quietly: true)
    }

    /// - Parameter quietly: makes other messages, with ids of their own.
    func notifications(to recipients: [Notification.Recipient], quietly: Bool) -> [Notification] {
        let rule = "\(saying.app)/\(saying.rule)" + (quietly ? "/quietly" : "")
        return saying.notifications(to: recipients, quietly: quietly) { index, _ in
            DerivedID.message(source: source, event: saying.correlation, rule: rule, index: index)
        }
    }
}

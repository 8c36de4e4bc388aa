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
    /// What is pushed instead of it.
    var preview: Content?
    var mutes: [String]
    var expiresAt: Timestamp?
    var delivery: DeliveryPolicy?
    /// Which of a person's tokens are meant. What waits is never for such tokens, so it is not kept.
    var scope: String? = nil
    /// The event's id.
    var correlation: String
    var traceparent: String?

    /// The messages that carry it to these users, each to at most ``Notification/maximumRecipients``.
    ///
    /// - Parameter id: of the message with this index and these recipients.
    func notifications(
        to recipients: [Notification.Recipient], quietly: Bool, id: (Int, [Notification.Recipient]) -> UUID
    ) -> [Notification] {
        let said = preview ?? content
        let content = quietly ? said.quiet : said
        return Saying.parts(of: recipients).enumerated().map { index, recipients in
            Notification(
                trace: Trace(
                    id: id(index, recipients), correlation: correlation, causation: correlation,
                    traceparent: traceparent),
                app: app, rule: rule, lane: lane, content: content, expiresAt: expiresAt, delivery: delivery,
                scope: scope, recipients: recipients)
        }
    }
}

extension Saying {
    /// Room for everything of a notification but its content and its recipients, in bytes.
    private static let envelope = 8 * 1024
    /// Room for the recipients of one message, in bytes.
    private static let recipientsRoom = 128 * 1024

    /// Whether one message can carry it: every stage accepts so much depth and size (``WireCoding``).
    var isSendable: Bool {
        let said = preview ?? content
        // The notification is an object around the content.
        guard said.depth < WireCoding.maximumDepth else { return false }
        let room = WireCoding.maximumBodySize - Saying.envelope - Saying.recipientsRoom
        if said.maximumEncodedSize <= room { return true }
        return (try? WireCoding.encode(said)).map { $0.count <= room } ?? false
    }

    /// Recipients by message: at most ``Notification/maximumRecipients``, and as many bytes as there is room for.
    fileprivate static func parts(of recipients: [Notification.Recipient]) -> [[Notification.Recipient]] {
        var parts: [[Notification.Recipient]] = []
        var (begin, size) = (0, 0)
        for place in recipients.indices {
            // The notification's id, a badge, the names of the members; and the user's id, of which each byte may be escaped.
            let bytes = 96 + 2 * recipients[place].user.rawValue.utf8.count
            if place > begin, size + bytes > recipientsRoom || place - begin == Notification.maximumRecipients {
                parts.append(Array(recipients[begin..<place]))
                (begin, size) = (place, 0)
            }
            size += bytes
        }
        guard begin < recipients.count else { return parts }
        return begin == 0 ? [recipients] : parts + [Array(recipients[begin...])]
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
    let event: DomainEvent
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
        var voice = ""
        /// Which part of a crowd it is said to.
        var part = ""
        var terms = NotificationDraft.Terms()
        var voices: Voices?
        /// Groups whose members are not among the recipients yet.
        var circles: [Circle] = []
        var audience: Audience?
        var broadcast: Broadcast?

        /// Whether it is to people whom rules do not know, in one message.
        var isAnnounced: Bool { audience != nil || broadcast != nil }
    }

    init(
        _ event: DomainEvent, ruleSet: RuleSet, arrivedAt arrival: Timestamp, drafts: [NotificationDraft],
        signals: [Signal] = []
    ) {
        self.event = event
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
        guard !isAnnounced else { return announcements }
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
        guard !isAnnounced else { return announcements }
        let rule = "\(saying.app)/\(saying.rule)\(voice)\(part)" + (quietly ? "/quietly" : "")
        return saying.notifications(to: recipients, quietly: quietly) { index, _ in
            DerivedID.message(source: source, event: saying.correlation, rule: rule, index: index)
        }
    }
}

extension EventCase.Statement {
    /// The one message to an audience, or to all who follow something. It is said again when the event comes again, and begins one campaign.
    private var announcements: [Notification] {
        guard isAnnounced else { return [] }
        let id = DerivedID.message(
            source: source, event: saying.correlation, rule: "\(saying.app)/\(saying.rule)", index: 0)
        return [
            Notification(
                trace: Trace(
                    id: id, correlation: saying.correlation, causation: saying.correlation,
                    traceparent: saying.traceparent),
                app: saying.app, rule: saying.rule, lane: saying.lane, content: saying.preview ?? saying.content,
                expiresAt: saying.expiresAt, delivery: saying.delivery, scope: saying.scope, recipients: [],
                audience: audience, broadcast: broadcast)
        ]
    }

    /// With these members of its groups, each once, after who is named.
    func joined(by members: [UserID]) -> EventCase.Statement {
        var statement = self
        statement.circles = []
        var seen = Set(recipients.map(\.user))
        let rule = "\(saying.app)/\(saying.rule)"
        for user in members where seen.insert(user).inserted {
            statement.recipients.append(
                Notification.Recipient(
                    user: user,
                    notification: DerivedID.notification(
                        source: source, event: saying.correlation, rule: rule, recipient: user)))
        }
        return statement
    }

    /// One for each voice that its people have to be spoken to in.
    func voiced(_ people: [PersonKey: Person]) -> [EventCase.Statement] {
        guard let voices, !isAnnounced else { return [self] }
        var order: [Voice] = []
        var groups: [Voice: [Notification.Recipient]] = [:]
        for recipient in recipients {
            let settings = people[PersonKey(app: saying.app, user: recipient.user)]?.settings
            let voice = voices.voice(for: settings ?? PersonalSettings())
            if groups[voice] == nil { order.append(voice) }
            groups[voice, default: []].append(recipient)
        }
        return order.map { voice in
            var statement = self
            statement.voices = nil
            statement.recipients = groups[voice, default: []]
            // What it says was tried in every language; a zone cannot make it fail.
            guard let utterance = try? voices.utterance(voice) else { return statement }
            statement.voice = "/\(voice.language.tag)/\(voice.zone.name)"
            statement.saying.id = DerivedID.uuid5(saying.id, ["voice", statement.voice])
            statement.saying.content = utterance.content
            statement.saying.preview = utterance.preview
            return statement
        }
    }
}

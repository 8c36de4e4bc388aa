import PushProtocol

/// What is known of a statement to more people than are decided about at once: the event that it is about, whose rule it
/// is, and how far it has come. People are told in the order of the bytes of their ids.
struct LargeAudience: Hashable, Sendable {
    /// The most people of a statement that are decided about together with its event.
    static let threshold = 1000
    /// The most that are looked at in a step.
    static let step = 500

    var event: DomainEvent
    var rule: String
    var arrivedAt: Timestamp
    /// How many the event names, and the groups that it is told to: how many it is told to at most.
    var named = 0
    var groupReferences: Set<String> = []
    /// Up to whom everybody was told, the broker has said so; empty: nobody yet.
    var told = ""
    /// Up to whom everybody was decided about, if that is further.
    var decided: String?
}

/// The people of a crowd who are next.
struct FanOutPage: Hashable, Sendable {
    var recipients: [Notification.Recipient]
    /// Up to whom everybody was looked at; `nil`: there is nobody after these.
    var end: String?

    /// A part of a group: members after some user.
    struct Part: Hashable, Sendable {
        var groupReference: GroupReference
        var members: [GroupReference.Member]
        /// The id of the last row read when the group may have more members; `nil` at the group's end.
        var end: String?
    }

    /// - Parameters:
    ///   - statement: with everybody whom the event names.
    ///   - parts: of its groups, all after `told`.
    init(_ pending: EventCase.PendingNotification, after told: String, _ parts: [Part], limit: Int = LargeAudience.step)
    {
        let horizon = parts.compactMap(\.end).min(by: FanOutPage.precedes)
        var named = pending
        named.recipients.removeAll { !FanOutPage.precedes(told, $0.user.rawValue) }
        let members = parts.flatMap { part in part.members.filter(part.groupReference.takes).map(\.user) }
        let all = named.joined(by: members).recipients
            .filter { recipient in horizon.map { !FanOutPage.precedes($0, recipient.user.rawValue) } ?? true }
            .sorted { FanOutPage.precedes($0.user.rawValue, $1.user.rawValue) }
        recipients = Array(all.prefix(limit))
        end = all.count > limit ? recipients.last?.user.rawValue : horizon
    }

    /// As the database orders them, which is not how texts are compared.
    static func precedes(_ a: String, _ b: String) -> Bool { a.utf8.lexicographicallyPrecedes(b.utf8) }
}

import PushProtocol

/// The progress of a notification to more than ``threshold`` users.
///
/// The users get it in steps, in the byte order of their ids.
struct LargeAudience: Hashable, Sendable {
    /// The maximum number of users in the event's own decision. More users need a fan-out.
    static let threshold = 1000
    /// The maximum number of users in a step.
    static let step = 500

    var event: DomainEvent
    var rule: String
    var arrivedAt: Timestamp
    /// The number of users that the event names.
    ///
    /// Together with the members of the groups, it is an upper bound for the number of recipients.
    var named = 0
    var groupReferences: Set<String> = []
    /// The last user id of the messages that the broker has confirmed; empty: none yet.
    var told = ""
    /// The last user id with a stored decision, if it is after the last confirmed one.
    var decided: String?
}

/// The recipients of the next step.
struct FanOutPage: Hashable, Sendable {
    var recipients: [Notification.Recipient]
    /// The last user id that was read; `nil`: there are no more users.
    var end: String?

    /// A page of one group: members after some user.
    struct Part: Hashable, Sendable {
        var groupReference: GroupReference
        var members: [GroupReference.Member]
        /// The id of the last row read when the group may have more members; `nil` at the group's end.
        var end: String?
    }

    /// - Parameters:
    ///   - pending: the notification with all users that the event names.
    ///   - told: the last user id of the previous step.
    ///   - parts: the next page of each group.
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

    /// Compares UTF-8 bytes, as the database does. Swift's `<` compares Unicode scalars in normalized form.
    static func precedes(_ a: String, _ b: String) -> Bool { a.utf8.lexicographicallyPrecedes(b.utf8) }
}

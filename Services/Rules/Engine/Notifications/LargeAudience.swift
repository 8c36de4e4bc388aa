package import PushProtocol
package import RuleLanguage

/// The progress of a notification to more than ``threshold`` users.
///
/// The users get it in steps, in the byte order of their ids.
package struct LargeAudience: Hashable, Sendable {
    /// The maximum number of users in the event's own decision. More users need a fan-out.
    package static let threshold = 1000
    /// The maximum number of users in a step.
    package static let step = 500

    package var event: DomainEvent
    package var rule: String
    package var arrivedAt: Timestamp
    /// The number of users that the event names.
    ///
    /// Together with the members of the groups, it is an upper bound for the number of recipients.
    package var named = 0
    package var groupReferences: Set<String> = []
    /// The last user id whose messages the broker has confirmed; empty: none yet.
    package var confirmedUpTo = ""
    /// The last user id with a stored decision, if it is after ``confirmedUpTo``.
    package var decidedUpTo: String?

    package init(
        event: DomainEvent, rule: String, arrivedAt: Timestamp, named: Int = 0, groupReferences: Set<String> = [],
        confirmedUpTo: String = "", decidedUpTo: String? = nil
    ) {
        self.event = event
        self.rule = rule
        self.arrivedAt = arrivedAt
        self.named = named
        self.groupReferences = groupReferences
        self.confirmedUpTo = confirmedUpTo
        self.decidedUpTo = decidedUpTo
    }
}

/// The recipients of the next step.
package struct FanOutPage: Hashable, Sendable {
    package var recipients: [Notification.Recipient]
    /// The last user id that was read; `nil`: there are no more users.
    package var end: String?

    /// A page of one group: members after some user.
    package struct Part: Hashable, Sendable {
        package var groupReference: GroupReference
        package var members: [GroupReference.Member]
        /// The id of the last row read when the group may have more members; `nil` at the group's end.
        package var end: String?

        package init(
            groupReference: GroupReference, members: [GroupReference.Member], end: String? = nil
        ) {
            self.groupReference = groupReference
            self.members = members
            self.end = end
        }
    }

    /// - Parameters:
    ///   - draft: the notification with all users that the event names.
    ///   - confirmedUpTo: the last user id of the previous step.
    ///   - parts: the next page of each group.
    package init(
        _ draft: NotificationDraft, after confirmedUpTo: String, _ parts: [Part], limit: Int = LargeAudience.step
    ) {
        let horizon = parts.compactMap(\.end).min(by: FanOutPage.precedes)
        var named = draft
        named.recipients.removeAll { !FanOutPage.precedes(confirmedUpTo, $0.user.rawValue) }
        let members = parts.flatMap { part in part.members.filter(part.groupReference.accepts).map(\.user) }
        let all = named.joined(by: members).recipients
            .filter { recipient in horizon.map { !FanOutPage.precedes($0, recipient.user.rawValue) } ?? true }
            .sorted { FanOutPage.precedes($0.user.rawValue, $1.user.rawValue) }
        recipients = Array(all.prefix(limit))
        end = all.count > limit ? recipients.last?.user.rawValue : horizon
    }

    /// Compares UTF-8 bytes, as the database does. Swift's `<` compares Unicode scalars in normalized form.
    package static func precedes(_ a: String, _ b: String) -> Bool { a.utf8.lexicographicallyPrecedes(b.utf8) }
}

package import FoundationEssentials
package import PushProtocol

/// One rule's notification about one event, with its recipients, before the decision for each of them.
///
/// Every id is derived from event, rule and recipient, so a redelivered event gives the same ids. The ids include the
/// app: two apps may receive the same event and use the same rule name.
package struct NotificationDraft: Hashable, Sendable {
    package var rendered: RenderedNotification
    package var policy: Rule.Policy
    /// Whether recipients notice the push. Preferences apply only if they do.
    package var isUserVisible: Bool
    /// Whether each badge is the recipient's number of unread inbox items.
    package var countsUnread: Bool
    /// Users, each once.
    package var recipients: [Notification.Recipient]
    /// The event's source. Message ids are derived from it.
    package var source: String
    /// The language and time zone of a part with one text. Message ids are derived from it.
    package var localization = ""
    /// The page of a fan-out. Message ids are derived from it.
    package var part = ""
    package var terms = Terms()
    /// The form of the rule. Only its users are recipients.
    var variant: VariantDraw?
    /// Renders the content for each recipient; `nil`: all recipients get the same content.
    package var localizer: RecipientLocalizer?
    /// Groups whose members are recipients too, and not in ``recipients`` yet.
    package var groupReferences: [GroupReference] = []
    /// Replaces users and groups.
    package var audience: Audience?
    /// Replaces users and groups: the registry finds the users, and ``RuleSet/draft(of:arrivedAt:)`` gives their drafts.
    package var segment: Segment?
    /// Whether no user matches the segment of its rule, or no notification has the item of its replacement.
    package var isOfNobody = false
    /// Its recipients are the users of the notifications that it replaces.
    package var replacement: Replacement?
    /// Replaces users, groups and audience.
    package var broadcast: Broadcast?
    /// The use of the broadcast channels of a live surface. They are found when the event is decided.
    package var channels: SurfaceChannels<String>?

    /// Whether it has one decision in place of one for each user. Rules do not know the users of an audience, a
    /// broadcast or a segment; one message goes to all of them.
    package var hasUnknownRecipients: Bool { audience != nil || broadcast != nil || segment != nil || isOfNobody }

    /// Whether its recipients are the broadcast channels of a live surface.
    package var isToChannels: Bool { channels?.role.isBroadcast ?? false }

    var hasRecipients: Bool {
        !recipients.isEmpty || !groupReferences.isEmpty || hasUnknownRecipients || replacement != nil
            || isToChannels
    }

    /// Further values from the event that apply until the push.
    package struct Terms: Hashable, Sendable {
        /// The item that the notification is about.
        package var item: String?
        /// Whether it starts the live surface of the item.
        package var startsSurface = false
        package var plan: Schedule.Plan?
        package var entry: Digest.Entry?
        /// The key that suppresses repeats (``Rule/Policy/Dedupe``).
        package var dedupe: String?
    }

    package func notificationID(of user: UserID) -> UUID {
        DerivedID.notification(
            source: source, event: rendered.correlation, rule: "\(rendered.app)/\(rendered.rule)", recipient: user)
    }

    /// Adds users without a badge after the recipients, each user once.
    package mutating func append(_ users: [UserID]) {
        var seen = Set(recipients.map(\.user))
        for user in users where concerns(user) && seen.insert(user).inserted {
            recipients.append(Notification.Recipient(user: user, notification: notificationID(of: user)))
        }
    }
}

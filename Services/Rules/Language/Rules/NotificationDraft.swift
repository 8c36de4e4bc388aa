package import PushProtocol
import FoundationEssentials

/// One rule's notification about one event, with its recipients and without ids.
package struct NotificationDraft: Hashable, Sendable {
    /// The rule's name.
    package var rule: String
    package var lane: Lane
    package var content: Content
    /// Replaces the content in the push if the rule's privacy is not `full`; the inbox has the content.
    package var preview: Content? = nil
    /// Renders the content for each recipient; `nil`: all recipients get the same content.
    package var localizer: RecipientLocalizer? = nil
    package var expiresAfter: Duration?
    package var delivery: DeliveryPolicy? = nil
    /// Selects among a user's tokens of one kind, such as the tokens of one Live Activity.
    package var scope: String? = nil
    /// Whether each badge is the recipient's number of unread inbox items.
    package var countsUnread = false
    /// Whether recipients notice the push. Preferences apply only if they do.
    package var isUserVisible = true
    package var policy = Rule.Policy()
    /// The names by which a user can mute the notification, the widest first.
    package var mutes: [String] = []
    package var terms = Terms()
    /// Users, each once.
    package var recipients: [Recipient]
    /// Groups whose members are recipients too.
    package var groupReferences: [GroupReference] = []
    /// Replaces users and groups.
    package var audience: Audience.Members? = nil
    package var followed: Broadcast.Destination? = nil

    /// Further values from the event that apply until the push.
    package struct Terms: Hashable, Sendable {
        /// The item that the notification is about.
        package var item: String?
        package var plan: Schedule.Plan?
        package var entry: Digest.Entry?
        /// The key that suppresses repeats (``Rule/Policy/Dedupe``).
        package var dedupe: String?

        package init(
            item: String? = nil, plan: Schedule.Plan? = nil, entry: Digest.Entry? = nil, dedupe: String? = nil
        ) {
            self.item = item
            self.plan = plan
            self.entry = entry
            self.dedupe = dedupe
        }
    }

    /// Whether there are recipients.
    var hasRecipients: Bool { !recipients.isEmpty || !groupReferences.isEmpty || audience != nil || followed != nil }

    package struct Recipient: Hashable, Sendable {
        package var user: UserID
        package var badge: Int?
    }
}

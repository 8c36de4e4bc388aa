package import FoundationEssentials

/// What rules decided: these users of one app shall hear this. Addressed to users; who their devices are is the
/// registry's knowledge. Exchange `notifications`, routing key `<lane>.<app>`.
package struct Notification: WireMessage, Hashable {
    package static let messageType = "heliograph.notification"
    package static let messageVersion = 1
    /// The most recipients one message may carry.
    package static let maximumRecipients = 500

    package var trace: Trace
    package var app: AppID
    /// The rule that spoke, for explanations and metrics.
    package var rule: String
    package var lane: Lane
    package var content: Content
    /// After this moment nobody is told any more; absent: the provider's own storage rules.
    package var expiresAt: Timestamp?
    /// Absent: at least once.
    package var delivery: DeliveryPolicy?
    package var recipients: [Recipient]

    package init(
        trace: Trace, app: AppID, rule: String, lane: Lane, content: Content, expiresAt: Timestamp? = nil,
        delivery: DeliveryPolicy? = nil, recipients: [Recipient]
    ) {
        self.trace = trace
        self.app = app
        self.rule = rule
        self.lane = lane
        self.content = content
        self.expiresAt = expiresAt
        self.delivery = delivery
        self.recipients = recipients
    }

    /// One user, and the id of what this user is told.
    package struct Recipient: Codable, Hashable, Sendable {
        package var user: UserID
        /// The notification id: one per event, rule and user (``DerivedID``).
        package var notification: UUID
        /// This user's own badge, winning over the content's.
        package var badge: Int?

        package init(user: UserID, notification: UUID, badge: Int? = nil) {
            self.user = user
            self.notification = notification
            self.badge = badge
        }
    }
}

package import FoundationEssentials

/// What rules decided: these users of one app, or this audience, shall hear this. Addressed to users; who their devices
/// are is the registry's knowledge. Exchange `notifications`, routing key `<lane>.<app>`.
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
    /// Of the APNs registrations, only those of this scope: the id of one Live Activity, say, as the app registered it.
    /// Absent: of any, and of none.
    package var scope: String?
    /// Empty when there is an audience or a broadcast.
    package var recipients: [Recipient]
    /// Instead of recipients. What is told to an audience goes through the bulk lane, whatever ``lane`` says.
    package var audience: Audience?
    /// Instead of both.
    package var broadcast: Broadcast?

    /// The longest scope, in characters, as of a registration's.
    package static let maximumScope = 128

    package var nestedContent: Content? { content }

    package init(
        trace: Trace, app: AppID, rule: String, lane: Lane, content: Content, expiresAt: Timestamp? = nil,
        delivery: DeliveryPolicy? = nil, scope: String? = nil, recipients: [Recipient], audience: Audience? = nil,
        broadcast: Broadcast? = nil
    ) {
        self.trace = trace
        self.app = app
        self.rule = rule
        self.lane = lane
        self.content = content
        self.expiresAt = expiresAt
        self.delivery = delivery
        self.scope = scope
        self.recipients = recipients
        self.audience = audience
        self.broadcast = broadcast
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

extension Notification {
    /// Refuses what is to nobody, and what is to more than one of recipients, an audience and a broadcast.
    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let audience = try container.decodeIfPresent(Audience.self, forKey: .audience)
        let broadcast = try container.decodeIfPresent(Broadcast.self, forKey: .broadcast)
        let isNamed = audience == nil && broadcast == nil
        let recipients =
            isNamed
            ? try container.decode([Recipient].self, forKey: .recipients)
            : try container.decodeIfPresent([Recipient].self, forKey: .recipients) ?? []
        guard isNamed || recipients.isEmpty, audience == nil || broadcast == nil else {
            throw DecodingError.dataCorruptedError(
                forKey: audience == nil ? .broadcast : .audience, in: container,
                debugDescription: "a notification has recipients, an audience or a broadcast, and one of them only")
        }
        self.init(
            trace: try container.decode(Trace.self, forKey: .trace),
            app: try container.decode(AppID.self, forKey: .app),
            rule: try container.decode(String.self, forKey: .rule),
            lane: try container.decode(Lane.self, forKey: .lane),
            content: try container.decode(Content.self, forKey: .content),
            expiresAt: try container.decodeIfPresent(Timestamp.self, forKey: .expiresAt),
            delivery: try container.decodeIfPresent(DeliveryPolicy.self, forKey: .delivery),
            scope: try container.decodeIfPresent(String.self, forKey: .scope), recipients: recipients,
            audience: audience, broadcast: broadcast)
    }
}

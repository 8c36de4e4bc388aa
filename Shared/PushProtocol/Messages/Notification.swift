package import FoundationEssentials

/// A decision of rules to notify users of one app, an audience or a broadcast. Exchange `notifications`, routing key
/// `<lane>.<app>`. The registry resolves users to devices.
package struct Notification: WireMessage, Codable, Hashable {
    package static let messageType = "heliograph.notification"
    package static let messageVersion = 1
    /// The maximum number of recipients in one message.
    package static let maximumRecipients = 500

    package var trace: Trace
    package var app: AppID
    /// The rule's name, for explanations and metrics.
    package var rule: String
    package var lane: Lane
    package var content: Content
    /// Not sent after this time; absent: the provider's storage limits apply.
    package var expiresAt: Timestamp?
    /// Absent: at least once.
    package var delivery: DeliveryPolicy?
    /// Limits APNs registrations to this scope, such as the id of one Live Activity. Absent: any scope, or none.
    package var scope: String?
    /// Selects among the recipients' devices. Absent: all that fit.
    package var devices: DeviceSelection?
    /// Empty for an audience or a broadcast.
    package var recipients: [Recipient]
    /// Replaces recipients. An audience is sent in the bulk lane, regardless of ``lane``.
    package var audience: Audience?
    /// Replaces recipients and audience.
    package var broadcast: Broadcast?

    /// The maximum length of a scope, in characters.
    package static let maximumScope = 128

    package var nestedContent: Content? { content }

    /// An audience has none: its users are not known yet.
    package var notificationIDs: [UUID] { broadcast.map { [$0.notification] } ?? recipients.map(\.notification) }

    package init(
        trace: Trace, app: AppID, rule: String, lane: Lane, content: Content, expiresAt: Timestamp? = nil,
        delivery: DeliveryPolicy? = nil, scope: String? = nil, devices: DeviceSelection? = nil, recipients: [Recipient],
        audience: Audience? = nil, broadcast: Broadcast? = nil
    ) {
        self.trace = trace
        self.app = app
        self.rule = rule
        self.lane = lane
        self.content = content
        self.expiresAt = expiresAt
        self.delivery = delivery
        self.scope = scope
        self.devices = devices
        self.recipients = recipients
        self.audience = audience
        self.broadcast = broadcast
    }

    /// A user and their notification id.
    package struct Recipient: Codable, Hashable, Sendable {
        package var user: UserID
        /// The notification id, derived from event, rule and user (``DerivedID``).
        package var notification: UUID
        /// The user's badge, which takes precedence over the content's.
        package var badge: Int?

        package init(user: UserID, notification: UUID, badge: Int? = nil) {
            self.user = user
            self.notification = notification
            self.badge = badge
        }
    }
}

extension Notification {
    /// Throws unless the notification has exactly one of recipients, audience and broadcast.
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
                debugDescription: "expected exactly one of recipients, audience and broadcast")
        }
        self.init(
            trace: try container.decode(Trace.self, forKey: .trace),
            app: try container.decode(AppID.self, forKey: .app),
            rule: try container.decode(String.self, forKey: .rule),
            lane: try container.decode(Lane.self, forKey: .lane),
            content: try container.decode(Content.self, forKey: .content),
            expiresAt: try container.decodeIfPresent(Timestamp.self, forKey: .expiresAt),
            delivery: try container.decodeIfPresent(DeliveryPolicy.self, forKey: .delivery),
            scope: try container.decodeIfPresent(String.self, forKey: .scope),
            devices: try container.decodeIfPresent(DeviceSelection.self, forKey: .devices), recipients: recipients,
            audience: audience, broadcast: broadcast)
    }
}

package import FoundationEssentials
package import PushProtocol

/// One rule's rendered notification about one event, without its recipients.
package struct RenderedNotification: Hashable, Sendable {
    /// Derived from event and rule.
    package var id: UUID
    package var app: AppID
    package var rule: String
    package var lane: Lane
    package var content: Content
    /// Replaces ``content`` in the push.
    package var preview: Content?
    package var mutes: [String]
    package var expiresAt: Timestamp?
    package var delivery: DeliveryPolicy?
    /// Selects among a user's tokens of one kind.
    package var scope: String? = nil
    /// The selected devices; `nil`: all.
    package var devices: DeviceSelection? = nil
    /// Whether its recipients are broadcast channels, by their labels (``Broadcast/Destination/decisionLabel``).
    package var isToChannels = false
    /// The event's id.
    package var correlation: String
    package var traceparent: String?

    package init(
        id: UUID, app: AppID, rule: String, lane: Lane, content: Content, preview: Content? = nil, mutes: [String],
        expiresAt: Timestamp? = nil, delivery: DeliveryPolicy? = nil, scope: String? = nil,
        devices: DeviceSelection? = nil, isToChannels: Bool = false,
        correlation: String, traceparent: String? = nil
    ) {
        self.id = id
        self.app = app
        self.rule = rule
        self.lane = lane
        self.content = content
        self.preview = preview
        self.mutes = mutes
        self.expiresAt = expiresAt
        self.delivery = delivery
        self.scope = scope
        self.devices = devices
        self.isToChannels = isToChannels
        self.correlation = correlation
        self.traceparent = traceparent
    }
}

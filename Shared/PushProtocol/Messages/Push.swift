package import FoundationEssentials

/// A notification's content once, and the devices of one provider that shall get it. Exchange `pushes`, routing key
/// `<provider>.<lane>.<app>`. The only message that holds device tokens.
package struct Push: WireMessage, Hashable {
    package static let messageType = "heliograph.push"
    package static let messageVersion = 1
    /// The most targets one message may carry.
    package static let maximumTargets = 500

    package var trace: Trace
    package var app: AppID
    package var provider: Provider
    package var environment: ProviderEnvironment
    package var lane: Lane
    package var content: Content
    package var expiresAt: Timestamp?
    package var targets: [Target]

    package init(
        trace: Trace, app: AppID, provider: Provider, environment: ProviderEnvironment, lane: Lane, content: Content,
        expiresAt: Timestamp? = nil, targets: [Target]
    ) {
        self.trace = trace
        self.app = app
        self.provider = provider
        self.environment = environment
        self.lane = lane
        self.content = content
        self.expiresAt = expiresAt
        self.targets = targets
    }

    /// One registration of one user.
    package struct Target: Codable, Hashable, Sendable {
        /// The registration's id.
        package var device: UUID
        package var token: DeviceToken
        /// The notification id of the user this device belongs to.
        package var notification: UUID
        package var badge: Int?
        /// When the registry last took this registration: what a provider's invalidation time is compared with.
        package var registeredAt: Timestamp

        package init(
            device: UUID, token: DeviceToken, notification: UUID, badge: Int? = nil, registeredAt: Timestamp
        ) {
            self.device = device
            self.token = token
            self.notification = notification
            self.badge = badge
            self.registeredAt = registeredAt
        }

        /// The `apns-id` of this notification on this device.
        package var pushID: UUID { DerivedID.push(notification: notification, device: device) }
    }
}

package import FoundationEssentials

/// A notification's content and the devices of one provider that receive it. Exchange `pushes`, routing key
/// `<provider>.<lane>.<app>`. The only message with device tokens.
///
/// On the wire `targets` is a table with the columns `devices`, `notifications`, `registeredAt` and `tokens`. Where a
/// target has one, also `addresses`, `badges`, `fallbacks` and `owners`, with `null` in other rows. A column other
/// than `devices` and `tokens` has a single value when all rows share it. Version 1 had a list of targets.
package struct Push: WireMessage, Hashable {
    package static let messageType = "heliograph.push"
    package static let messageVersion = 2
    /// The maximum number of targets in one message.
    package static let maximumTargets = 500

    package var trace: Trace
    package var app: AppID
    /// The campaign that it belongs to; absent for other notifications. A revoked campaign revokes its pushes.
    package var campaign: UUID?
    package var provider: Provider
    package var environment: ProviderEnvironment
    package var lane: Lane
    /// The content. Decoded on each access if the push came from the bus.
    package var content: Content {
        get { storage.content }
        set { storage = PushContent(newValue) }
    }
    private(set) var storage: PushContent
    package var expiresAt: Timestamp?
    /// Absent: at least once.
    package var delivery: DeliveryPolicy?
    package var targets: [Target]

    package var notificationIDs: [UUID] { targets.map(\.notification) }

    package init(
        trace: Trace, app: AppID, campaign: UUID? = nil, provider: Provider, environment: ProviderEnvironment,
        lane: Lane, content: Content,
        expiresAt: Timestamp? = nil, delivery: DeliveryPolicy? = nil, targets: [Target]
    ) {
        self.trace = trace
        self.app = app
        self.campaign = campaign
        self.provider = provider
        self.environment = environment
        self.lane = lane
        storage = PushContent(content)
        self.expiresAt = expiresAt
        self.delivery = delivery
        self.targets = targets
    }

    /// Creates a push with a content that may still be encoded.
    init(
        trace: Trace, app: AppID, campaign: UUID?, provider: Provider, environment: ProviderEnvironment, lane: Lane,
        content: PushContent,
        expiresAt: Timestamp?, delivery: DeliveryPolicy?, targets: [Target]
    ) {
        self.trace = trace
        self.app = app
        self.campaign = campaign
        self.provider = provider
        self.environment = environment
        self.lane = lane
        storage = content
        self.expiresAt = expiresAt
        self.delivery = delivery
        self.targets = targets
    }

    /// The encoded content, if it can be copied unchanged.
    package var encodedContent: EncodedContent? {
        switch storage {
        case .encoded(let text): text
        case .decoded: nil
        }
    }

    package var nestedContent: Content? {
        switch storage {
        case .decoded(let box): box.content
        case .encoded: nil
        }
    }

    /// The kind of a target's `token`, if other than a device's token (ProviderFacts.md §A.11, §B.2).
    package enum Address: String, Hashable, Sendable, CaseIterable {
        /// A Firebase installation ID: one device.
        case fid
        /// All devices subscribed to this topic.
        case topic
        /// All devices whose topics match this condition.
        case condition
        /// All devices subscribed to this APNs broadcast channel; the token is the channel id.
        case channel
    }

    /// One registration of one user, or a provider-side audience for an ``Address`` of many devices.
    package struct Target: Hashable, Sendable {
        /// The registration's id. For a channel, topic or condition, an id derived from it.
        package var device: UUID
        package var token: DeviceToken
        /// The kind of `token`; absent for an APNs device token and an FCM registration token.
        package var address: Address?
        /// The notification id of the device's user.
        package var notification: UUID
        package var badge: Int?
        /// When the registration was last renewed. Compared with a provider's invalidation time.
        package var registeredAt: Timestamp
        /// A registration token of the same installation and user, used when the provider rejects the FID. Absent
        /// without one, and for other addresses.
        package var fallback: DeviceToken?
        /// The user of an established registration; absent for a new registration and for many devices.
        package var owner: UserHash?

        package init(
            device: UUID, token: DeviceToken, address: Address? = nil, notification: UUID, badge: Int? = nil,
            registeredAt: Timestamp, fallback: DeviceToken? = nil, owner: UserHash? = nil
        ) {
            self.device = device
            self.token = token
            self.address = address
            self.notification = notification
            self.badge = badge
            self.registeredAt = registeredAt
            self.fallback = fallback
            self.owner = owner
        }

        /// The `apns-id` of this notification on this device.
        package var pushID: UUID { DerivedID.push(notification: notification, device: device) }
    }
}

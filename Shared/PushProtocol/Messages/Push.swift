package import FoundationEssentials

/// A notification's content once, and the devices of one provider that shall get it. Exchange `pushes`, routing key
/// `<provider>.<lane>.<app>`. The only message that holds device tokens.
///
/// On the wire `targets` is a table, with a column for each part of a target: `devices`, `notifications`, `registeredAt`,
/// `tokens`, and, where a target has one, `addresses`, `badges`, `fallbacks` and `owners`, with `null` for those without. A
/// column that would have the same in every row has it once; not those of devices and tokens. Version 1 had a list of targets.
package struct Push: WireMessage, Hashable {
    package static let messageType = "heliograph.push"
    package static let messageVersion = 2
    /// The most targets one message may carry.
    package static let maximumTargets = 500

    package var trace: Trace
    /// This message's own.
    @inline(__always)
    package var id: UUID { trace.id }
    package var app: AppID
    package var provider: Provider
    package var environment: ProviderEnvironment
    package var lane: Lane
    /// What is shown; read anew each time it is asked for, where the push came from the bus.
    package var content: Content {
        get { given.content }
        set { given = PushContent(newValue) }
    }
    private(set) var given: PushContent
    package var expiresAt: Timestamp?
    /// Absent: at least once.
    package var delivery: DeliveryPolicy?
    package var targets: [Target]

    package init(
        trace: Trace, app: AppID, provider: Provider, environment: ProviderEnvironment, lane: Lane, content: Content,
        expiresAt: Timestamp? = nil, delivery: DeliveryPolicy? = nil, targets: [Target]
    ) {
        self.trace = trace
        self.app = app
        self.provider = provider
        self.environment = environment
        self.lane = lane
        given = PushContent(content)
        self.expiresAt = expiresAt
        self.delivery = delivery
        self.targets = targets
    }

    /// As above, with a content that is left as the text it came as.
    init(
        trace: Trace, app: AppID, provider: Provider, environment: ProviderEnvironment, lane: Lane,
        content: PushContent,
        expiresAt: Timestamp?, delivery: DeliveryPolicy?, targets: [Target]
    ) {
        self.trace = trace
        self.app = app
        self.provider = provider
        self.environment = environment
        self.lane = lane
        given = content
        self.expiresAt = expiresAt
        self.delivery = delivery
        self.targets = targets
    }

    /// The content as it came, where it may be copied as it stands.
    package var contentText: ContentText? {
        switch given {
        case .text(let text): text
        case .value: nil
        }
    }

    package var nestedContent: Content? {
        switch given {
        case .value(let box): box.content
        case .text: nil
        }
    }

    /// What a target's `token` is when it is not one device's token (`push-protocols` A.11, B.2).
    package enum Address: String, Codable, Hashable, Sendable, CaseIterable {
        /// A Firebase installation ID: one device, as a registration token is.
        case fid
        /// Every device subscribed to the topic of this name.
        case topic
        /// Every device whose topics fulfil this condition.
        case condition
        /// Every device that follows this APNs broadcast channel; the token is the channel's id.
        case channel
    }

    /// One registration of one user; or, with an ``Address`` of many devices, whoever is subscribed.
    package struct Target: Decodable, Hashable, Sendable {
        /// The registration's id. For a topic or condition, an id that its sender derived from it.
        package var device: UUID
        package var token: DeviceToken
        /// What `token` is; absent for an APNs device token and an FCM registration token.
        package var address: Address?
        /// The notification id of the user this device belongs to.
        package var notification: UUID
        package var badge: Int?
        /// When the registry last took this registration: what a provider's invalidation time is compared with.
        package var registeredAt: Timestamp
        /// The registration token of the same installation and user, for a FID that the provider does not know. Absent
        /// without one, and for every other address.
        package var fallback: DeviceToken?
        /// The owner of an established registration; absent for a new registration and for many devices.
        package var owner: OwnerKey?

        package init(
            device: UUID, token: DeviceToken, address: Address? = nil, notification: UUID, badge: Int? = nil,
            registeredAt: Timestamp, fallback: DeviceToken? = nil, owner: OwnerKey? = nil
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

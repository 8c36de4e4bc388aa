package import FoundationEssentials
package import PushProtocol

/// A device token with its app, provider, environment, user and registration time.
package struct Registration: Hashable, Sendable {
    package var device: UUID
    package var app: AppID
    package var user: UserID
    package var provider: Provider
    package var environment: ProviderEnvironment
    package var token: DeviceToken
    package var kind: RegistrationKind
    package var installation: InstallationID?
    /// Distinguishes several tokens of one kind on an installation, such as the id of a Live Activity.
    package var scope: String?
    /// The `apns-topic`, unless it follows from the app and the push type.
    package var topic: String?
    /// The last registration time, which is also the last-seen time: apps register at each launch.
    package var registeredAt: Timestamp
    /// Whether the user has had it for a day or longer, according to the registry or an import. New registrations are
    /// no evidence against a route.
    var isEstablished = false
    /// Of a FID: the version of the app.
    package var appVersion: String?
    /// Of a FID: whether a provider refused it within a day and accepted a registration token instead.
    var isSuspected = false
    /// Whether it is an Apple device that is registered with FCM.
    package var isAppleByFCM = false
    /// Of a FID: the registration token to try if the FID is refused.
    var fallback: DeviceToken?

    package init(
        device: UUID, app: AppID, user: UserID, provider: Provider, environment: ProviderEnvironment,
        token: DeviceToken, kind: RegistrationKind? = nil, installation: InstallationID? = nil, scope: String? = nil,
        topic: String? = nil, registeredAt: Timestamp
    ) {
        self.device = device
        self.app = app
        self.user = user
        self.provider = provider
        self.environment = environment
        self.token = token
        self.kind = kind ?? .defaultKind(for: provider)
        self.installation = installation
        self.scope = scope
        self.topic = topic
        self.registeredAt = registeredAt
    }
}

extension Registration {
    /// The platform, as ``DeviceFilter`` defines it.
    package var platform: DeviceFilter.Platform {
        if kind == .fcmWeb || kind == .webPush { return .web }
        return provider == .apns || isAppleByFCM ? .apple : .android
    }
}

/// Whether a registration is active, or why it ended; raw values of the column `state`.
package enum RegistrationState: String, Sendable, CaseIterable {
    case active
    case signedOut = "signed-out"
    case invalidated
    /// Replaced by another token of the installation, or by the same token in its correct environment.
    case replaced
    /// The user registered more devices than the maximum.
    case evicted
    /// Not seen for so long that its provider has expired it.
    case stale
    /// The user was erased, and the token deleted.
    case erased
}

/// One user of one app; the key of device lookups.
package struct AppUser: Hashable, Sendable {
    package var app: AppID
    package var user: UserID

    package init(app: AppID, user: UserID) {
        self.app = app
        self.user = user
    }

    /// Omits the app: few users have several apps, and a batch hashes tens of thousands.
    package func hash(into hasher: inout Hasher) { hasher.combine(user) }
}

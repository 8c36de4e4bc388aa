import FoundationEssentials
import PushProtocol

/// A token, and whose it is: app, provider, environment, user and time (design.md §5).
struct Registration: Hashable, Sendable {
    var device: UUID
    var app: AppID
    var user: UserID
    var provider: Provider
    var environment: ProviderEnvironment
    var token: DeviceToken
    var kind: RegistrationKind
    var installation: InstallationID?
    /// What one installation may have several of: the id of a Live Activity, say.
    var scope: String?
    /// The `apns-topic`, where it does not follow from the app and the push type.
    var topic: String?
    /// When it was last taken, which is when the device was last seen: apps register at each launch.
    var registeredAt: Timestamp
    /// Whether its user has had it for a day or longer, by the registry's knowledge or by an import's: new registrations
    /// are no evidence against a route.
    var isEstablished = false
    /// Of a FID: the version of the app.
    var appVersion: String?
    /// Of a FID: whether a provider refused it within a day and took a registration token instead.
    var isSuspected = false
    /// Of a FID that is to be used: the registration token to try next.
    var fallback: DeviceToken?

    init(
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

/// Why nothing goes to a registration; the words of the column `state`.
enum RegistrationState: String, Sendable, CaseIterable {
    case active
    case signedOut = "signed-out"
    case invalidated
    /// Another token of the installation, or the same token in the environment where it lives, took its place.
    case replaced
    /// The user has registered more devices since than are kept.
    case evicted
    /// Not seen for so long that its provider has forgotten it.
    case stale
    /// The user asked to be forgotten; the token is gone.
    case erased
}

/// One user of one app: what a send looks devices up by.
struct AppUser: Hashable, Sendable {
    var app: AppID
    var user: UserID

    init(app: AppID, user: UserID) {
        self.app = app
        self.user = user
    }

    /// Few people use several apps, and a batch asks for tens of thousands.
    func hash(into hasher: inout Hasher) { hasher.combine(user) }
}

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
    var registeredAt: Timestamp

    init(
        device: UUID, app: AppID, user: UserID, provider: Provider, environment: ProviderEnvironment,
        token: DeviceToken, registeredAt: Timestamp
    ) {
        self.device = device
        self.app = app
        self.user = user
        self.provider = provider
        self.environment = environment
        self.token = token
        self.registeredAt = registeredAt
    }
}

/// What a client claims before the registry has taken it: a registration without an id and a time of its own.
struct Claim: Hashable, Sendable {
    var app: AppID
    var user: UserID
    var provider: Provider
    var environment: ProviderEnvironment
    var token: DeviceToken

    init(
        app: AppID, user: UserID, provider: Provider, environment: ProviderEnvironment, token: DeviceToken
    ) {
        self.app = app
        self.user = user
        self.provider = provider
        // FCM has one world, whatever a debug build says of itself.
        self.environment = provider == .fcm ? .production : environment
        self.token = token
    }

    /// The id this claim's registration has, whoever the user is.
    var device: UUID {
        DerivedID.device(app: app, provider: provider, environment: environment, token: token)
    }
}

/// Why nothing goes to a registration; the words of the column `state`.
enum RegistrationState: String, Sendable, CaseIterable {
    case active
    case signedOut = "signed-out"
    case invalidated
    case replaced
    /// The user has registered more devices since than anyone owns.
    case evicted
}

/// One user of one app: what a send looks devices up by.
struct AppUser: Hashable, Sendable {
    var app: AppID
    var user: UserID

    init(app: AppID, user: UserID) {
        self.app = app
        self.user = user
    }
}

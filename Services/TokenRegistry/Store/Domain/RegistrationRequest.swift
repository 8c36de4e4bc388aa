package import FoundationEssentials
package import PushProtocol

/// A client's request to register a device. It replaces all data of an earlier registration, including absent members.
package struct RegistrationRequest: Hashable, Sendable {
    package var app: AppID
    package var user: UserID
    package var provider: Provider
    package var environment: ProviderEnvironment
    package var token: DeviceToken
    package var kind: RegistrationKind
    package var installation: InstallationID?
    /// Distinguishes several tokens of one kind on an installation, such as the id of a Live Activity.
    package var scope: String?
    package var topic: String?
    /// Of FCM tokens only.
    package var platform: DevicePlatform?
    package var locale: String?
    package var timeZone: String?
    package var appVersion: String?
    /// Of Web Push subscriptions: when the browser lets it expire; most have no such time.
    package var expiresAt: Timestamp?
    /// The registration time; `nil`: the database's time when stored.
    package var at: Timestamp?

    package init(
        app: AppID, user: UserID, provider: Provider, environment: ProviderEnvironment, token: DeviceToken,
        kind: RegistrationKind? = nil, installation: InstallationID? = nil, scope: String? = nil, at: Timestamp? = nil
    ) {
        self.app = app
        self.user = user
        self.provider = provider
        self.environment = provider.hasOneEnvironment ? .production : environment
        self.token = token
        self.kind = kind ?? .defaultKind(for: provider)
        self.installation = installation
        self.scope = scope
        self.at = at
    }

    package var owner: AppUser { AppUser(app: app, user: user) }

    /// The registration's id. It does not depend on the user.
    package var device: UUID {
        DerivedID.device(app: app, provider: provider, environment: environment, token: token)
    }
}

extension RegistrationRequest {
    /// Validates a command's payload, whose members become columns. Errors name the member and never quote a token.
    package init(_ registrant: RegistrationPayload, app: AppID) throws(WireError) {
        // Only the HTTP API checks the endpoint that a client chose, and whether the app has a Web Push key.
        guard registrant.provider != .webpush else {
            throw .invalid(
                path: "command.provider",
                problem: "a browser registers its subscription over HTTP; PUT /v1/installations/{installation}")
        }
        guard DeviceToken(registrant.token.secret, for: registrant.provider) == registrant.token else {
            throw .invalid(
                path: "command.token", problem: "not a normalised \(registrant.provider.rawValue) token")
        }
        let kind = registrant.kind ?? .defaultKind(for: registrant.provider)
        guard kind.provider == registrant.provider else {
            throw .invalid(
                path: "command.kind", problem: "“\(kind.rawValue)” is not a kind of \(registrant.provider.rawValue)")
        }
        self.init(
            app: app, user: registrant.user, provider: registrant.provider, environment: registrant.environment,
            token: registrant.token, kind: kind, installation: registrant.installation, at: registrant.at)
        scope = try Self.text(registrant.scope, "scope", 128)
        topic = try Self.text(registrant.topic, "topic", 255)
        platform = provider == .fcm ? registrant.platform : nil
        locale = try Self.text(registrant.locale, "locale", 64)
        timeZone = try Self.text(registrant.timeZone, "timeZone", 64)
        appVersion = try Self.text(registrant.appVersion, "appVersion", 64)
    }

    private static func text(_ text: String?, _ name: String, _ limit: Int) throws(WireError) -> String? {
        guard let text else { return nil }
        guard (1...limit).contains(text.utf8.count), text.isVisibleASCII else {
            throw .invalid(path: "command.\(name)", problem: "expected 1–\(limit) visible ASCII characters")
        }
        return text
    }
}

/// Assigns requests to waves, from 0. In a wave, each token, user and installation occurs once.
struct WaveNumbers: Sendable {
    private var latest: [UniqueKey: Int] = [:]

    private enum UniqueKey: Hashable {
        case token(AppID, Provider, DeviceToken)
        case user(AppID, UserID)
        case installation(AppID, InstallationID)
    }

    mutating func next(for claim: RegistrationRequest) -> Int {
        var keys: [UniqueKey] = [.token(claim.app, claim.provider, claim.token), .user(claim.app, claim.user)]
        if let installation = claim.installation { keys.append(.installation(claim.app, installation)) }
        let wave = keys.compactMap { latest[$0] }.max().map { $0 + 1 } ?? 0
        for key in keys { latest[key] = wave }
        return wave
    }
}

extension [RegistrationRequest] {
    /// Splits into waves, in each of which no token, user or installation occurs twice. Storing a wave in one statement
    /// then equals storing its requests one by one.
    var waves: [[RegistrationRequest]] {
        var waves: [[RegistrationRequest]] = []
        var numbers = WaveNumbers()
        for claim in self {
            let wave = numbers.next(for: claim)
            if wave == waves.count { waves.append([]) }
            waves[wave].append(claim)
        }
        return waves
    }
}

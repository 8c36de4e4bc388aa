import Foundation

/// A device token of this installation.
public struct DeviceToken: Codable, Hashable, Sendable {
    /// APNs: `alert`, `voip`, `live-activity`, `push-to-start` and others; FCM: `fcm-token` or `fid`.
    public var kind: String
    /// The token; APNs' in hexadecimal.
    public var token: String
    /// APNs only: `production`, or `development` for builds that Xcode installs.
    public var environment: String?
    /// Distinguishes several tokens of a kind, such as the id of a Live Activity.
    public var scope: String?
    /// The APNs topic, if it is not the default of the app and the kind.
    public var topic: String?
    /// FCM only: `ios` or `android`.
    public var platform: String?

    /// Takes all members. ``apns(_:kind:environment:scope:topic:)`` and ``fcm(_:platform:)`` are shorter.
    public init(
        kind: String, token: String, environment: String? = nil, scope: String? = nil, topic: String? = nil,
        platform: String? = nil
    ) {
        self.kind = kind
        self.token = token
        self.environment = environment
        self.scope = scope
        self.topic = topic
        self.platform = platform
    }

    /// A token of APNs.
    public static func apns(
        _ token: Data, kind: String = "alert", environment: String, scope: String? = nil, topic: String? = nil
    ) -> DeviceToken {
        let text = token.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        return DeviceToken(kind: kind, token: text, environment: environment, scope: scope, topic: topic)
    }

    /// A registration token of FCM, in an iOS app with the Firebase SDK.
    public static func fcm(_ token: String, platform: String = "ios") -> DeviceToken {
        DeviceToken(kind: "fcm-token", token: token, platform: platform)
    }

    var json: JSONValue {
        let members = [
            "kind": kind, "token": token, "environment": environment, "scope": scope, "topic": topic,
            "platform": platform,
        ]
        return .object(members.compactMapValues { $0.map(JSONValue.string) })
    }
}

/// Properties of the installation that the registry stores beside its tokens.
public struct InstallationDetails: Codable, Hashable, Sendable {
    /// Such as `de-CH`.
    public var locale: String?
    /// Such as `Europe/Zurich`.
    public var timeZone: String?
    /// Such as `4.2`.
    public var appVersion: String?

    /// Takes the three properties.
    public init(locale: String? = nil, timeZone: String? = nil, appVersion: String? = nil) {
        self.locale = locale
        self.timeZone = timeZone
        self.appVersion = appVersion
    }

    /// The properties of the running app.
    public static var current: InstallationDetails {
        InstallationDetails(
            locale: Locale.current.identifier.replacingOccurrences(of: "_", with: "-"),
            timeZone: TimeZone.current.identifier,
            appVersion: Bundle.main.infoDictionary?["CFBundleShortVersionString"] as? String)
    }
}

extension HeliographClient {
    /// The random id of this installation. It stays the same until the store is erased. Keep it secret.
    public var installation: String {
        get async { await registrar.installation }
    }

    /// Assigns this installation to a user, and registers its tokens. Call it after sign-in and at each launch.
    ///
    /// - Parameter user: Compared with the last one only. The bearer token decides the user at the server.
    /// - Returns: Whether a request was necessary. An unchanged registration is sent once a day.
    @discardableResult public func signIn(as user: String, details: InstallationDetails = .current) async throws -> Bool
    {
        await registrar.setUser(user, details)
        await receiptOutbox.flush()
        return try await registrar.synchronize()
    }

    /// Stores a new or rotated token, and registers it if a user is signed in. Call it whenever the system gives a token.
    ///
    /// - Returns: Whether a request was necessary.
    @discardableResult public func setToken(_ token: DeviceToken) async throws -> Bool {
        await registrar.setToken(token)
        return try await registrar.synchronize()
    }

    /// Removes a token, such as that of an ended Live Activity.
    @discardableResult public func removeToken(kind: String, scope: String? = nil) async throws -> Bool {
        await registrar.removeToken(kind: kind, scope: scope)
        return try await registrar.synchronize()
    }

    /// Ends the user's registrations on this installation. Call it while the user's bearer token is still valid.
    ///
    /// After an error, call it again before you discard the bearer token. The next sign-in on this device ends the
    /// registrations too.
    public func signOut() async throws {
        await presenceKeeper.stop()
        await receiptOutbox.flush()
        await receiptOutbox.erase()
        try await registrar.signOut()
    }
}

/// Registers this installation: compares its tokens with the ones last sent, and repeats failed requests.
actor Registrar {
    private struct State: Codable {
        var installation: String
        var user: String?
        var details = InstallationDetails()
        var tokens: [DeviceToken] = []
        var sent: Sent?
    }

    /// The registration that the server has acknowledged.
    private struct Sent: Codable {
        var user: String
        var body: Data
        var at: Date
    }

    private static let key = "installation"

    private let connection: APIConnection
    private let configuration: HeliographClient.Configuration
    private let store: any ClientStore
    private var state: State
    private var running: Task<Bool, any Error>?

    init(connection: APIConnection, configuration: HeliographClient.Configuration, store: any ClientStore) {
        self.connection = connection
        self.configuration = configuration
        self.store = store
        if let stored = store.decoded(State.self, forKey: Self.key) {
            state = stored
        } else {
            state = State(installation: UUID().uuidString.lowercased())
            store.encode(state, forKey: Self.key)
        }
    }

    var installation: String { state.installation }

    func setUser(_ user: String, _ details: InstallationDetails) {
        state.user = user
        state.details = details
        save()
    }

    func setToken(_ token: DeviceToken) {
        state.tokens.removeAll { $0.kind == token.kind && $0.scope == token.scope }
        state.tokens.append(token)
        save()
    }

    func removeToken(kind: String, scope: String?) {
        state.tokens.removeAll { $0.kind == kind && $0.scope == scope }
        save()
    }

    /// Sends the registration until the server has the current one. Returns whether a request was necessary.
    func synchronize() async throws -> Bool {
        var hasSent = false
        while true {
            if let running {
                // A change after the start of that request is found in the next round.
                hasSent = (try? await running.value) ?? false || hasSent
                if self.running == running { self.running = nil }
                continue
            }
            guard let (user, body) = try pending() else { return hasSent }
            let task = Task { try await self.put(user, body) }
            running = task
            defer { if running == task { running = nil } }
            hasSent = try await task.value || hasSent
        }
    }

    /// The registration to send; nil if the server has it, or if there is no user or token.
    private func pending() throws -> (user: String, body: JSONValue)? {
        guard let user = state.user, !state.tokens.isEmpty else { return nil }
        let members = [
            "locale": state.details.locale, "time_zone": state.details.timeZone,
            "app_version": state.details.appVersion,
        ]
        var body = members.compactMapValues { $0.map(JSONValue.string) }
        body["registrations"] = .array(state.tokens.map(\.json))
        let json = JSONValue.object(body)
        if let sent = state.sent, sent.user == user, try sent.body == json.encoded() {
            let age = connection.clock.now().timeIntervalSince(sent.at)
            // A clock that was set back makes the age negative.
            if (0..<configuration.refreshInterval).contains(age) { return nil }
        }
        return (user, json)
    }

    private func put(_ user: String, _ body: JSONValue) async throws -> Bool {
        _ = try await connection.send(
            "PUT", url, body: body, attempts: configuration.registrationAttempts, backoff: .registration)
        // A sign-out or another sign-in during the request makes the acknowledgement worthless.
        guard state.user == user else { return true }
        state.sent = Sent(user: user, body: try body.encoded(), at: connection.clock.now())
        save()
        return true
    }

    func signOut() async throws {
        state.user = nil
        state.sent = nil
        save()
        // A registration under way could arrive after the sign-out.
        running?.cancel()
        _ = try? await running?.value
        _ = try await connection.send(
            "DELETE", url, attempts: configuration.registrationAttempts, backoff: .registration)
    }

    private var url: URL { configuration.registry.api("v1", "installations", state.installation) }

    private func save() { store.encode(state, forKey: Self.key) }
}

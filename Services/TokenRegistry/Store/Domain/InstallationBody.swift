package import Providers
package import PushProtocol

/// The body of `PUT /v1/installations/{installation}`: all registrations of one app on one device.
///
///     {"locale": "de-CH", "time_zone": "Europe/Zurich", "app_version": "4.2", "registrations": [
///         {"kind": "alert", "token": "<device token>", "environment": "production"},
///         {"kind": "live-activity", "token": "…", "environment": "production", "scope": "match-17"},
///         {"kind": "fid", "token": "<FID>", "platform": "ios"},
///         {"kind": "web-push", "subscription": {"endpoint": "https://…", "keys": {"p256dh": "…", "auth": "…"}}}]}
///
/// Strict: rejects unknown members with their path, since a misspelt one would have no effect.
package struct InstallationBody: Hashable, Sendable {
    /// Maximum body size in bytes: the maximum number of registrations with the longest tokens.
    package static let maximumSize = 160 * 1024
    static let maximumRegistrations = 32

    package let locale: String?
    package let timeZone: String?
    package let appVersion: String?
    let registrations: [Entry]

    /// One token of the installation. FCM tokens have no environment, topic or scope; APNs tokens no platform. Web Push
    /// subscriptions have none of them.
    struct Entry: Hashable, Sendable {
        package var kind: RegistrationKind
        package var token: DeviceToken
        package var environment: ProviderEnvironment
        package var topic: String?
        package var scope: String?
        package var platform: DevicePlatform?
        package var expiresAt: Timestamp?
    }

    /// Decodes and validates a body. Errors name the member and never quote a token.
    ///
    /// - Parameter policy: the push services that a Web Push subscription may name.
    package init(_ body: [UInt8], policy: WebPushEndpoint.Policy = .publicInternet) throws(WireError) {
        let value = try WireCoding.decode(JSONValue.self, from: body, maximumSize: Self.maximumSize)
        let members = try JSONObjectReader(
            value, at: "the body", prefix: "", known: ["registrations", "locale", "time_zone", "app_version"])
        locale = try members.visibleASCII("locale", 64)
        timeZone = try members.visibleASCII("time_zone", 64)
        appVersion = try members.visibleASCII("app_version", 64)
        guard let entries = try members.required("registrations").array,
            (1...Self.maximumRegistrations).contains(entries.count)
        else {
            throw .invalid(
                path: "registrations",
                problem: "expected an array of 1–\(Self.maximumRegistrations); DELETE ends an installation")
        }
        registrations = try entries.enumerated().map { (n, entry) throws(WireError) in
            try Entry(entry, at: "registrations[\(n)]", policy)
        }
    }

    /// The path of the first Web Push subscription.
    package var webPush: String? {
        registrations.firstIndex { $0.kind == .webPush }.map { "registrations[\($0)].kind" }
    }

    /// The first repeated token, or repeated kind and scope.
    package var contradiction: WireError? {
        var tokens: [Token: Int] = [:]
        var slots: [Slot: Int] = [:]
        for (n, entry) in registrations.enumerated() {
            if let first = tokens.updateValue(n, forKey: Token(provider: entry.kind.provider, token: entry.token)) {
                return .invalid(
                    path: "registrations[\(n)].token", problem: "registrations[\(first)] has the same; send each once")
            }
            if let first = slots.updateValue(n, forKey: Slot(kind: entry.kind, scope: entry.scope)) {
                return .invalid(
                    path: "registrations[\(n)].kind",
                    problem: "registrations[\(first)] has the same kind and scope; send one token for each")
            }
        }
        return nil
    }

    package func claims(of user: AppUser, on installation: InstallationID) -> [RegistrationRequest] {
        registrations.map { entry in
            var claim = RegistrationRequest(
                app: user.app, user: user.user, provider: entry.kind.provider, environment: entry.environment,
                token: entry.token, kind: entry.kind, installation: installation, scope: entry.scope)
            (claim.topic, claim.platform, claim.expiresAt) = (entry.topic, entry.platform, entry.expiresAt)
            (claim.locale, claim.timeZone, claim.appVersion) = (locale, timeZone, appVersion)
            return claim
        }
    }

    private struct Token: Hashable {
        let provider: Provider
        let token: DeviceToken
    }

    private struct Slot: Hashable {
        let kind: RegistrationKind
        let scope: String?
    }
}

extension InstallationBody.Entry {
    fileprivate init(_ value: JSONValue, at path: String, _ policy: WebPushEndpoint.Policy) throws(WireError) {
        let name = try JSONObjectReader(value, at: path, prefix: "\(path).", known: nil).text("kind")
        guard let kind = RegistrationKind(rawValue: name) else {
            let kinds = RegistrationKind.allCases.map(\.rawValue).joined(separator: ", ")
            throw .invalid(path: "\(path).kind", problem: "expected one of \(kinds)")
        }
        let known =
            switch kind.provider {
            case .apns: ["kind", "token", "environment", "topic", "scope"]
            case .fcm: ["kind", "token", "platform"]
            case .webpush: ["kind", "subscription"]
            }
        let members = try JSONObjectReader(value, at: path, prefix: "\(path).", known: known)
        if kind == .webPush {
            try self.init(subscription: try members.required("subscription"), at: "\(path).subscription", policy)
            return
        }
        guard let token = DeviceToken(try members.text("token"), for: kind.provider) else {
            throw .invalid(path: "\(path).token", problem: RegistrationBody.expectedFormat(of: kind.provider))
        }
        self.init(kind: kind, token: token, environment: .production)
        switch kind.provider {
        case .apns:
            guard let environment = ProviderEnvironment(rawValue: try members.text("environment")) else {
                throw .invalid(path: "\(path).environment", problem: "expected “development” or “production”")
            }
            self.environment = environment
            topic = try members.visibleASCII("topic", 255)
            scope = try members.visibleASCII("scope", 128)
        case .fcm:
            guard let name = try members.visibleASCII("platform", 16) else { break }
            guard let platform = DevicePlatform(rawValue: name) else {
                throw .invalid(path: "\(path).platform", problem: "expected “ios” or “android”")
            }
            self.platform = platform
        case .webpush: break
        }
    }

    /// Reads what `PushSubscription.toJSON()` gives in a browser.
    private init(
        subscription value: JSONValue, at path: String, _ policy: WebPushEndpoint.Policy
    ) throws(WireError) {
        do throws(WebPushSubscription.Problem) {
            let subscription = try WebPushSubscription(value, policy: policy)
            self.init(kind: .webPush, token: subscription.token, environment: .production)
            expiresAt = subscription.expiresAt
        } catch {
            throw .invalid(path: path, problem: error.description)
        }
    }
}

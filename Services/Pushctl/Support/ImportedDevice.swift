import FoundationEssentials
import PushProtocol
import RegistryStore

/// A registration from a file, validated like one from a device.
struct ImportedDevice: Hashable, Sendable {
    let request: RegistrationRequest
    /// `nil`: the start of the import.
    let registeredAt: Date?

    /// - Parameter app: the app of lines without one.
    init(_ fields: [DeviceField: String], app: AppID?, apps: Set<AppID>) throws(LineError) {
        let app = try Self.app(fields[.app], app, apps)
        guard let user = fields[.user].flatMap({ UserID(rawValue: $0) }) else {
            throw LineError("user is missing or invalid: \(UserID.rule)")
        }
        let kind = try Self.kind(fields)
        guard kind.provider != .webpush else {
            throw LineError(
                "Web Push subscriptions cannot be imported; browsers register them again when they are opened")
        }
        let environment = try Self.environment(fields[.environment], of: kind.provider)
        guard let token = fields[.token].flatMap({ DeviceToken($0, for: kind.provider) }) else {
            throw LineError("token is missing or invalid: \(RegistrationBody.expectedFormat(of: kind.provider))")
        }
        var request = RegistrationRequest(
            app: app, user: user, provider: kind.provider, environment: environment, token: token, kind: kind,
            installation: try Self.installation(fields[.installation]))
        request.scope = try Self.word(fields, .scope, 128)
        request.topic = try Self.word(fields, .topic, 255)
        request.platform = kind.provider == .fcm ? try Self.platform(fields) : nil
        request.locale = try Self.word(fields, .locale, 64)
        request.timeZone = try Self.word(fields, .timeZone, 64)
        request.appVersion = try Self.word(fields, .appVersion, 64)
        self.request = request
        guard let time = fields[.registeredAt] else {
            registeredAt = nil
            return
        }
        guard let date = RFC3339.date(from: time) else {
            throw LineError("registered_at is invalid: expected a time such as 2026-01-31T12:00:00Z")
        }
        registeredAt = date
    }
}

extension ImportedDevice {
    private static func app(_ name: String?, _ usual: AppID?, _ apps: Set<AppID>) throws(LineError) -> AppID {
        guard let app = name.map({ AppID(rawValue: $0) }) ?? usual else {
            throw LineError(
                name == nil ? "app is missing; --app names one for all lines" : "app is invalid: \(AppID.rule)")
        }
        guard apps.contains(app) else { throw LineError("app is not in the apps file") }
        return app
    }

    private static func kind(_ fields: [DeviceField: String]) throws(LineError) -> RegistrationKind {
        var providers: Set<Provider> = []
        if let name = fields[.provider] {
            guard let provider = Provider(rawValue: name) else {
                throw LineError("provider is invalid: expected “apns” or “fcm”")
            }
            providers.insert(provider)
        }
        switch try platform(fields) {
        case nil: break
        case .ios: providers.insert(.apns)
        case .android: providers.insert(.fcm)
        }
        if let name = fields[.kind] {
            guard let kind = RegistrationKind(rawValue: name) else {
                let kinds = RegistrationKind.allCases.map(\.rawValue).joined(separator: ", ")
                throw LineError("kind is invalid: expected one of \(kinds)")
            }
            // `ios` with an FCM token names the device, not the provider: Firebase serves both.
            guard fields[.provider] == nil || providers.contains(kind.provider) else {
                throw LineError("kind and provider contradict each other")
            }
            return kind
        }
        guard let provider = providers.first, providers.count == 1 else {
            throw LineError(
                providers.isEmpty
                    ? "one of kind, provider or platform is required; --platform names one for all lines"
                    : "provider and platform contradict each other; give the kind")
        }
        return .defaultKind(for: provider)
    }

    private static func platform(_ fields: [DeviceField: String]) throws(LineError) -> DevicePlatform? {
        guard let name = fields[.platform] else { return nil }
        guard let platform = DevicePlatform(rawValue: name) else {
            throw LineError("platform is invalid: expected “ios” or “android”")
        }
        return platform
    }

    private static func environment(
        _ name: String?, of provider: Provider
    ) throws(LineError) -> ProviderEnvironment {
        switch (provider, name) {
        // FCM and Web Push have a single environment.
        case (let provider, nil) where provider.hasOneEnvironment: return .production
        case (_, let name):
            guard let environment = name.flatMap(ProviderEnvironment.init(clientName:)) else {
                throw LineError(
                    "environment is missing or invalid: expected “production” or “development”"
                        + (name == nil ? "; --environment names one for all lines" : ""))
            }
            return provider.hasOneEnvironment ? .production : environment
        }
    }

    private static func installation(_ name: String?) throws(LineError) -> InstallationID? {
        guard let name else { return nil }
        guard let id = InstallationID(rawValue: name) else {
            throw LineError("installation is invalid: \(InstallationID.rule)")
        }
        return id
    }

    private static func word(
        _ fields: [DeviceField: String], _ field: DeviceField, _ limit: Int
    ) throws(LineError) -> String? {
        guard let text = fields[field] else { return nil }
        guard text.utf8.count <= limit, text.isVisibleASCII else {
            throw LineError("\(field.rawValue) is invalid: expected at most \(limit) visible ASCII characters")
        }
        return text
    }
}

package import PushProtocol

/// The body of both endpoints that the mobile clients call:
/// `{"token":"<device token>","platform":"ios"|"android","environment":"development"|"production","type":"<topic>"}`.
/// `type` is optional.
package struct RegistrationBody: Hashable, Sendable {
    /// Maximum body size in bytes: the longest token and the other members.
    package static let maximumSize = 8 * 1024

    package let provider: Provider
    package let environment: ProviderEnvironment
    package let token: DeviceToken
    /// The topic that the user joins or leaves (`type`).
    package let topic: GroupName?

    /// Decodes and validates a body. Errors name the member and never quote a token.
    package init(_ body: [UInt8]) throws(WireError) {
        let value = try WireCoding.decode(JSONValue.self, from: body, maximumSize: Self.maximumSize)
        let members = try JSONObjectReader(value, at: "the body", prefix: "", known: nil)
        provider = try Self.provider(platform: try members.text("platform"))
        environment = try Self.environment(try members.text("environment"))
        guard let token = DeviceToken(try members.text("token"), for: provider) else {
            throw .invalid(path: "token", problem: Self.expectedFormat(of: provider))
        }
        self.token = token
        topic = try members.optional(
            "type", "expected the name of a topic, 1–128 visible ASCII characters, or no type"
        ) { value in value.string.flatMap(GroupName.init(rawValue:)) }
    }

    private static func provider(platform: String) throws(WireError) -> Provider {
        switch platform {
        case "ios": return .apns
        case "android": return .fcm
        default: throw .invalid(path: "platform", problem: "expected “ios” or “android”")
        }
    }

    private static func environment(_ name: String) throws(WireError) -> ProviderEnvironment {
        guard let environment = ProviderEnvironment(clientName: name) else {
            throw .invalid(path: "environment", problem: "expected “development” (or “sandbox”) or “production”")
        }
        return environment
    }

    /// The expected token format, for error messages.
    package static func expectedFormat(of provider: Provider) -> String {
        switch provider {
        case .apns: "an APNs device token is hexadecimal, of even length, at most 512 digits"
        case .fcm: "an FCM registration token is visible ASCII without spaces, at most 4096 characters"
        case .webpush: "a Web Push subscription is registered as a subscription of an installation"
        }
    }
}

/// The members of a `register` command: a user, a token and the device's properties.
package struct RegistrationPayload: Codable, Hashable, Sendable {
    package var user: UserID
    package var provider: Provider
    package var environment: ProviderEnvironment
    package var token: DeviceToken
    /// Absent: the provider's default, ``RegistrationKind/defaultKind(for:)``.
    package var kind: RegistrationKind?
    /// The installation that owns the token. A new token replaces the installation's former one of the same kind, and
    /// ends other users' registrations on it. Absent: the token stands alone.
    package var installation: InstallationID?
    /// Distinguishes tokens of one installation and kind, such as by the id of a Live Activity.
    package var scope: String?
    /// The token's `apns-topic`, if it does not follow from the app and the push type.
    package var topic: String?
    /// The platform of an FCM token; absent: Android. FCM expires Android tokens after 270 days of inactivity, and so
    /// does the registry (Firebase: Manage FCM registration tokens).
    package var platform: DevicePlatform?
    /// BCP 47, such as `de-CH`.
    package var locale: String?
    /// IANA, such as `Europe/Zurich`.
    package var timeZone: String?
    package var appVersion: String?
    /// When the device registered, by the publisher's clock. Later changes take precedence, so redeliveries are
    /// harmless. Absent or in the future: when the registry processes the command.
    package var at: Timestamp?

    package init(
        user: UserID, provider: Provider, environment: ProviderEnvironment, token: DeviceToken,
        kind: RegistrationKind? = nil, installation: InstallationID? = nil, scope: String? = nil,
        topic: String? = nil, platform: DevicePlatform? = nil, locale: String? = nil, timeZone: String? = nil,
        appVersion: String? = nil,
        at: Timestamp? = nil
    ) {
        self.user = user
        self.provider = provider
        self.environment = environment
        self.token = token
        self.kind = kind
        self.installation = installation
        self.scope = scope
        self.topic = topic
        self.platform = platform
        self.locale = locale
        self.timeZone = timeZone
        self.appVersion = appVersion
        self.at = at
    }
}

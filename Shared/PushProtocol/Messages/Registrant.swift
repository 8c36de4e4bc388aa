/// Who registers which token, and what is known about the device: the members of a `register` command.
package struct Registrant: Codable, Hashable, Sendable {
    package var user: UserID
    package var provider: Provider
    package var environment: ProviderEnvironment
    package var token: DeviceToken
    /// Absent: the provider's usual one, ``RegistrationKind/usual(of:)``.
    package var kind: RegistrationKind?
    /// The app on the device that the token is of. A new token of an installation replaces the one it had of that kind,
    /// and another user's registrations on it end. Absent: the token stands for itself.
    package var installation: InstallationID?
    /// Tells apart what one installation may have several of, such as the id of a Live Activity.
    package var scope: String?
    /// The `apns-topic` of this token, where it is not the one that follows from the app and the push type.
    package var topic: String?
    /// Of a token of FCM's: on what the app runs. Google forgets those of Android that are not seen for 270 days, and so does
    /// the registry. Absent: Android.
    package var platform: DevicePlatform?
    /// BCP 47, such as `de-CH`.
    package var locale: String?
    /// IANA, such as `Europe/Zurich`.
    package var timeZone: String?
    package var appVersion: String?
    /// When the device registered, by the publisher's clock. What is known to be later than this is not undone by it, so
    /// that a redelivery is harmless. Absent, or in the future: the moment at which the registry reads it.
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

package import HTTP2
package import PushProtocol

/// One credential's connections to one of a provider's hosts, and who sends over them.
package struct ProviderClient: Sendable {
    package let apps: [AppID]
    package let environment: ProviderEnvironment
    /// The one in force: a new certificate brings a new client, and before the first there is none.
    package let current: @Sendable () -> HTTP2Client?

    package init(
        apps: [AppID], environment: ProviderEnvironment, current: @escaping @Sendable () -> HTTP2Client?
    ) {
        self.apps = apps.sorted()
        self.environment = environment
        self.current = current
    }
}

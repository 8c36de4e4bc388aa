package import HTTP2
package import PushProtocol

/// The connections of one credential to one host of a provider, and the apps that use them.
package struct ProviderClient: Sendable {
    package let apps: [AppID]
    package let environment: ProviderEnvironment
    /// The client in use; `nil` before the first. A new client certificate replaces it.
    package let current: @Sendable () -> HTTP2Client?

    package init(
        apps: [AppID], environment: ProviderEnvironment, current: @escaping @Sendable () -> HTTP2Client?
    ) {
        self.apps = apps.sorted()
        self.environment = environment
        self.current = current
    }

    /// Identifies the client in metrics.
    struct Label: Hashable {
        let apps: [AppID]
        let environment: ProviderEnvironment
    }

    var label: Label { Label(apps: apps, environment: environment) }
}

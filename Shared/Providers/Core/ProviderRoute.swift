package import PushProtocol

/// One app in one environment of a provider: the unit with its own credential, connections and circuit breaker.
package struct ProviderRoute: Hashable, Sendable, CustomStringConvertible {
    package var app: AppID
    package var environment: ProviderEnvironment

    package init(app: AppID, environment: ProviderEnvironment) {
        self.app = app
        self.environment = environment
    }

    package init(of push: Push) { self.init(app: push.app, environment: push.environment) }

    package var description: String { "\(app)/\(environment.rawValue)" }
}

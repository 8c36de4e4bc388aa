package import Providers
package import PushProtocol
package import PushSending
package import ServiceKit

/// The gateways of all configured apps at one provider, with their credentials and connections.
package protocol SenderGateways: Sendable {
    associatedtype Gateway: PushGateway

    var byRoute: [ProviderRoute: Gateway] { get }
    /// The executor of each app: the event loop of its connections, on which its pushes are also handled.
    var executors: [AppID: any TaskExecutor] { get }
    /// The routes whose credential was unusable when they were added, each with the reason.
    var unusableRoutes: [ProviderRoute: String] { get }
    var clients: [ProviderClient] { get }
    /// The credential files, their routes and the action when a file changes.
    var watchedFiles: [CredentialWatcher.WatchedFile] { get }

    /// Adds the routes of an app. Does nothing for an app without credentials of the provider.
    mutating func add(_ app: AppConfiguration) async throws
}

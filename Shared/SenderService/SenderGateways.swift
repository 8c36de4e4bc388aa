package import Providers
package import PushProtocol
package import PushSending

/// The gateways of all configured apps at one provider, with their credentials and connections.
package protocol SenderGateways {
    associatedtype Gateway: PushGateway

    var byRoute: [ProviderRoute: Gateway] { get }
    /// The executor of each app: the event loop of its connections, on which its pushes are also handled.
    var executors: [AppID: any TaskExecutor] { get }
    /// The routes whose credential is unusable at start, each with the reason.
    var unusableRoutes: [ProviderRoute: String] { get }
    var clients: [ProviderClient] { get }
    /// The credential files, their routes and the action when a file changes.
    var watchedFiles: [CredentialWatcher.WatchedFile] { get }
}

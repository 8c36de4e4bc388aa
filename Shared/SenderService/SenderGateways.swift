package import Providers
package import PushProtocol
package import PushSending

/// The gateways of all configured apps at one provider, with their credentials and connections.
package protocol SenderGateways {
    associatedtype Gateway: PushGateway

    var byRoute: [ProviderRoute: Gateway] { get }
    /// The event loop of the app's connections, on which its pushes are handled.
    var executors: [AppID: any TaskExecutor] { get }
    /// The routes with an unusable credential, and the reasons.
    var unusable: [ProviderRoute: String] { get }
    var clients: [ProviderClient] { get }
    /// The credential files, their routes and the action when a file changes.
    var watched: [CredentialWatcher.WatchedFile] { get }
}

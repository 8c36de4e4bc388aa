import Providers
import PushProtocol
import PushSending
import ServiceKit
import Synchronization

/// The gateways of a running sender. Apps are added while others are served.
actor CurrentGateways<Gateways: SenderGateways> {
    /// The parts that other tasks read.
    private struct Snapshot: Sendable {
        var executors: [AppID: any TaskExecutor]
        var clients: [ProviderClient]
        var watchedFiles: [CredentialWatcher.WatchedFile]

        init(_ gateways: some SenderGateways) {
            executors = gateways.executors
            clients = gateways.clients
            watchedFiles = gateways.watchedFiles
        }
    }

    private var gateways: Gateways
    private let snapshot: Mutex<Snapshot>

    init(_ gateways: Gateways) {
        self.gateways = gateways
        snapshot = Mutex(Snapshot(gateways))
    }

    nonisolated var clients: [ProviderClient] { snapshot.withLock { $0.clients } }
    nonisolated var watchedFiles: [CredentialWatcher.WatchedFile] { snapshot.withLock { $0.watchedFiles } }

    nonisolated func executor(of app: AppID) -> (any TaskExecutor)? { snapshot.withLock { $0.executors[app] } }

    /// Adds an app. Calls must not overlap.
    ///
    /// - Returns: its routes with their gateways, and the reason of each unusable route.
    func add(
        _ app: AppConfiguration
    ) async throws -> (routes: [ProviderRoute: Gateways.Gateway], unusable: [ProviderRoute: String]) {
        var gateways = gateways
        try await gateways.add(app)
        self.gateways = gateways
        snapshot.withLock { [gateways] in $0 = Snapshot(gateways) }
        return (
            gateways.byRoute.filter { $0.key.app == app.id }, gateways.unusableRoutes.filter { $0.key.app == app.id }
        )
    }
}

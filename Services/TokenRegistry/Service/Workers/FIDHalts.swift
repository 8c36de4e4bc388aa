import Logging
import Metrics
import PushProtocol
import RegistryStore
import ServiceKit
import ServiceLifecycle
import Synchronization

/// Caches the cohorts whose FIDs are not used. Rereads them every 5 seconds.
final class FIDHalts: Service {
    static let pace = Duration.seconds(5)

    private let store: FIDStore
    private let apps: ActiveApps
    private let logger: Logger
    private let known = Mutex(FIDPreference())

    init(store: FIDStore, apps: ActiveApps, logger: Logger) {
        self.store = store
        self.apps = apps
        self.logger = logger
    }

    /// The halts that were read last. Kept while the database is unavailable.
    var preference: FIDPreference { known.withLock { $0 } }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                // The stage reports the outage.
                try? await self.refresh()
                guard (try? await Task.sleep(for: Self.pace)) != nil else { return }
            }
        }
    }

    /// Reads the cohorts once.
    func refresh() async throws {
        let current = try await store.halts()
        let ended = known.withLock { known in
            defer { known = current }
            return known.halted.subtracting(current.halted)
        }
        for cohort in ended {
            logger.notice(
                "FID halt of an app version has ended; using its FIDs again",
                metadata: [LogKey.app: "\(cohort.app)", "app_version": "\(cohort.version)"])
        }
        for app in apps.sorted {
            Gauge(label: "heliograph_registry_fid_halts", dimensions: [("app", app.rawValue)])
                .record(current.halted.count { $0.app == app })
        }
    }
}

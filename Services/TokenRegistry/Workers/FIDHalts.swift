import Logging
import Metrics
import PushProtocol
import ServiceKit
import ServiceLifecycle
import Synchronization

/// The cohorts whose FIDs are not used, read every few seconds for all pushes that this process plans.
///
/// | name | kind | labels | counts |
/// |---|---|---|---|
/// | `heliograph_registry_fid_halts` | gauge | app | versions of the app whose FIDs are not used |
final class FIDHalts: Service {
    static let pace = Duration.seconds(5)

    private let store: FIDStore
    private let apps: [AppID]
    private let logger: Logger
    private let known = Mutex(FIDPreference())

    init(store: FIDStore, apps: [AppID], logger: Logger) {
        self.store = store
        self.apps = apps
        self.logger = logger
    }

    /// The halts that were read last; kept while the database is away.
    var preference: FIDPreference { known.withLock { $0 } }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                // The stage reports an outage of the database.
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
                "The halt of this version's FIDs is over; FIDs are tried again",
                metadata: [LogKey.app: "\(cohort.app)", "app_version": "\(cohort.version)"])
        }
        for app in apps {
            Gauge(label: "heliograph_registry_fid_halts", dimensions: [("app", app.rawValue)])
                .record(current.halted.count { $0.app == app })
        }
    }
}

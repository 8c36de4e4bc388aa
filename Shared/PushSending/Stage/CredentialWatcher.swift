package import Logging
package import Providers
package import PushProtocol
import Metrics
import ServiceLifecycle

/// Reloads changed credential files without a restart. Runs until graceful shutdown.
///
/// | name | kind | labels | counts |
/// |---|---|---|---|
/// | `heliograph_credential_loads_total` | counter | provider, result | changed credential files, `taken` or `refused` |
///
/// Polls every few seconds, with one `stat` for each file. File notifications miss replaced links, as Kubernetes uses
/// for secrets, and network file systems.
package struct CredentialWatcher: Service {
    package static var interval: Duration { .seconds(5) }

    /// A credential file and the routes that use it.
    package struct WatchedFile: Sendable {
        package var file: any WatchedCredential
        package var routes: [ProviderRoute]
        /// Applies a new credential if `file` does not: discards minted credentials and replaces the connections.
        package var renew: @Sendable () -> Void

        package init(
            file: any WatchedCredential, routes: [ProviderRoute], renew: @escaping @Sendable () -> Void = {}
        ) {
            self.file = file
            self.routes = routes
            self.renew = renew
        }
    }

    private let entries: [WatchedFile]
    private let routes: ProviderRoutes
    private let provider: Provider
    private let clock: SenderClock
    private let logger: Logger

    package init(
        _ entries: [WatchedFile], routes: ProviderRoutes, provider: Provider, clock: SenderClock = .system,
        logger: Logger
    ) {
        self.entries = entries
        self.routes = routes
        self.provider = provider
        self.clock = clock
        self.logger = logger
    }

    /// The errors of the current files, for readiness; `nil` without errors.
    package var problem: String? {
        let problems = entries.compactMap { $0.file.problem.map { "\($0)" } }
        return problems.isEmpty ? nil : problems.joined(separator: "; ")
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            // Cancelled by the shutdown only.
            repeat { await reload() } while (try? await clock.sleep(Self.interval)) != nil
        }
    }

    /// Reloads every changed file once.
    package func reload() async {
        for entry in entries {
            defer { record(entry) }
            let file: Logger.Metadata = ["file": "\(entry.file.path)"]
            switch await entry.file.reload() {
            case .unchanged: break
            case .taken:
                count("taken")
                entry.renew()
                for route in entry.routes { routes.recheck(route) }
                logger.notice("Credential file changed; using the new credential", metadata: file)
            case .restored:
                logger.notice("Credential file contains the credential in use again", metadata: file)
            case .refused(let error, let oldStays):
                count("refused")
                logger.error(
                    oldStays
                        ? "Credential file changed and is invalid; old credential stays in use. Fix the file"
                        : "Credential file is invalid, and no older credential is known. Fix the file",
                    metadata: file.merging(["reason": "\(error)"]) { $1 })
            }
        }
    }

    private func record(_ entry: WatchedFile) {
        guard let expiresAt = entry.file.expiresAt else { return }
        for route in entry.routes {
            CertificateExpiry(provider: provider, route: route).record(expiresAt, now: clock.now())
        }
    }

    private func count(_ result: String) {
        Counter(
            label: "heliograph_credential_loads_total",
            dimensions: [("provider", provider.rawValue), ("result", result)]
        ).increment()
    }
}

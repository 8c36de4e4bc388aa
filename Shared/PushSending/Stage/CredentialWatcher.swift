package import Logging
package import Providers
package import PushProtocol
import Metrics
import ServiceLifecycle

/// Reloads changed credential files without a restart. Runs until graceful shutdown.
///
/// The counter's label `taken` means that the new credential is in use, `refused` that the file is invalid.
///
/// Polls every few seconds, with one `stat` for each file. Notifications of the file system would not be enough: they
/// miss a replaced symbolic link, with which Kubernetes updates a secret, and changes on network file systems.
package struct CredentialWatcher: Service {
    package static var interval: Duration { .seconds(5) }

    /// A credential file and the routes that use it.
    package struct WatchedFile: Sendable {
        package var file: any WatchedCredential
        package var routes: [ProviderRoute]
        /// Called after `file` loaded a new credential. Discards the tokens minted with the old credential, and
        /// replaces the connections. Empty for a client certificate, whose ``WatchedCredential/reload()`` replaces
        /// them.
        package var renew: @Sendable () -> Void

        package init(
            file: any WatchedCredential, routes: [ProviderRoute], renew: @escaping @Sendable () -> Void = {}
        ) {
            self.file = file
            self.routes = routes
            self.renew = renew
        }
    }

    private let files: @Sendable () -> [WatchedFile]
    private let routes: ProviderRoutes
    private let provider: Provider
    private let clock: SenderClock
    private let logger: Logger

    /// - Parameter files: the files now; apps may be added.
    package init(
        _ files: @escaping @Sendable () -> [WatchedFile], routes: ProviderRoutes, provider: Provider,
        clock: SenderClock = .system, logger: Logger
    ) {
        self.files = files
        self.routes = routes
        self.provider = provider
        self.clock = clock
        self.logger = logger
    }

    /// The errors of the current files, for readiness; `nil` without errors.
    package var problem: String? {
        let problems = files().compactMap { $0.file.problem.map { "\($0)" } }
        return problems.isEmpty ? nil : problems.joined(separator: "; ")
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            // Only the shutdown cancels the sleep.
            repeat { await reload() } while (try? await clock.sleep(Self.interval)) != nil
        }
    }

    /// Reloads every changed file once.
    package func reload() async {
        for watched in files() {
            // Also of an unchanged file: the days until expiry decrease.
            defer { recordExpiry(of: watched) }
            let metadata: Logger.Metadata = ["file": "\(watched.file.path)"]
            switch await watched.file.reload() {
            case .unchanged: break
            case .loaded:
                count("taken")
                watched.renew()
                for route in watched.routes { routes.probeAtOnce(route) }
                logger.notice("Credential file changed; using the new credential", metadata: metadata)
            case .restored:
                logger.notice("Credential file contains the credential in use again", metadata: metadata)
            case .refused(let error, let keepsOld):
                count("refused")
                logger.error(
                    keepsOld
                        ? "Credential file changed and is invalid; old credential stays in use. Fix the file"
                        : "Credential file is invalid, and no older credential is known. Fix the file",
                    metadata: metadata.merging(["reason": "\(error)"]) { $1 })
            }
        }
    }

    private func recordExpiry(of watched: WatchedFile) {
        guard let expiresAt = watched.file.expiresAt else { return }
        for route in watched.routes {
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

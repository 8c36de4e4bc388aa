package import Logging
import FoundationEssentials
import Primitives
import PushProtocol
import ServiceLifecycle

/// Adds the new apps of a changed apps file without a restart. Runs until graceful shutdown.
///
/// Polls the file, because notifications of the file system miss a replaced symbolic link, with which Kubernetes
/// updates a volume. Refuses the whole file if it has a mistake. A new app that cannot be served yet is tried again with
/// ``backoff``, and at once when the file changes. Both are logged once for each reason, and degrade the readiness
/// condition `apps`.
///
/// A removed app is served until the process ends, and so are the former settings of a changed app. Both are logged.
package actor AppReloader: Service {
    package static var pace: Duration { .seconds(2) }
    /// The wait until new apps are tried again. A try may open a connection to the broker.
    static let backoff = Backoff(base: .seconds(2), cap: .seconds(30))

    private let path: String
    private let files: AppCatalog.Files
    private let condition: Readiness.Condition
    private let logger: Logger
    private let add: @Sendable (AppConfiguration) async throws -> Void
    private var served: AppCatalog
    /// The file's content at the last poll.
    private var seen: Data?
    /// The last valid content, whose differences are logged.
    private var compared: Data?
    private var lastProblem: String?
    private let now: @Sendable () -> ContinuousClock.Instant
    /// The consecutive tries after which a new app was not served.
    private var failures = 0
    /// When new apps are tried again; `nil` for at the next poll.
    private var retryAt: ContinuousClock.Instant?

    /// - Parameters:
    ///   - served: the apps that the process serves from its start.
    ///   - files: the kinds of files that must exist.
    ///   - condition: the readiness condition. Holds, or is degraded.
    ///   - now: the clock of the backoff.
    ///   - add: starts to serve an app. Throws if the app cannot be served yet; the error's description is the reason.
    package init(
        path: String, served: AppCatalog, using files: AppCatalog.Files, condition: Readiness.Condition,
        logger: Logger, now: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        add: @escaping @Sendable (AppConfiguration) async throws -> Void
    ) {
        self.path = path
        self.served = served
        self.files = files
        self.condition = condition
        self.logger = logger
        self.now = now
        self.add = add
        condition.set(.holds)
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            repeat { await self.look() } while (try? await Task.sleep(for: Self.pace)) != nil
        }
    }

    /// Reads the file once. Does nothing if it is unchanged and the last poll had no problem.
    package func look() async {
        let content = FileManager.default.contents(atPath: path)
        guard content != seen || lastProblem != nil else { return }
        if content != seen { (failures, retryAt) = (0, nil) }
        seen = content
        let catalog: AppCatalog
        do throws(ConfigurationError) {
            catalog = try AppCatalog.load(path: path, using: files)
        } catch {
            report("the apps file is refused; the former apps are served: \(error)")
            (failures, retryAt) = (0, nil)
            return
        }
        if content != compared {
            noteDifferences(catalog)
            compared = content
        }
        if let retryAt, now() < retryAt { return }
        var reasons: [String] = []
        for app in catalog.apps where served[app.id] == nil {
            do {
                try await add(app)
                served = AppCatalog(served.apps + [app])
                logger.notice("App added; serving it", metadata: [LogKey.app: "\(app.id)"])
            } catch {
                reasons.append("the new app \(app.id) is not served yet: \(error)")
            }
        }
        failures = reasons.isEmpty ? 0 : failures + 1
        retryAt = reasons.isEmpty ? nil : now() + Self.backoff.delay(afterFailures: failures, jitter: .equal)
        report(reasons.isEmpty ? nil : reasons.joined(separator: "; "))
    }

    private func report(_ problem: String?) {
        condition.set(problem.map { .degraded($0) } ?? .holds)
        defer { lastProblem = problem }
        guard problem != lastProblem else { return }
        if let problem {
            logger.error(
                "Apps file has changed and is not fully in use; trying again", metadata: [LogKey.reason: "\(problem)"])
        } else {
            logger.notice("Apps file is valid again, and its new apps are served")
        }
    }

    private func noteDifferences(_ catalog: AppCatalog) {
        for app in served.apps {
            guard let new = catalog[app.id] else {
                logger.warning(
                    "App removed from the apps file; serving it until a restart", metadata: [LogKey.app: "\(app.id)"])
                continue
            }
            if new != app {
                logger.warning(
                    "Settings of an app changed in the apps file; the former ones count until a restart",
                    metadata: [LogKey.app: "\(app.id)"])
            }
        }
    }
}

package import Logging
import Metrics
package import PushProtocol
import ServiceLifecycle

/// Looks at credential files every few seconds, and has what changed taken up without a restart. Runs until graceful
/// shutdown.
///
/// | name | kind | labels | counts |
/// |---|---|---|---|
/// | `heliograph_credential_loads_total` | counter | provider, result | changed credential files, `taken` or `refused` |
///
/// There is no notification to rely on: secrets are exchanged by renaming links above them, and files on a network
/// notify nobody. A look is one `stat` a file.
package struct CredentialWatch: Service {
    package static var pace: Duration { .seconds(5) }

    /// One file, and what depends on it.
    package struct Entry: Sendable {
        package var file: any WatchedCredential
        package var lanes: [LaneKey]
        /// Puts the new credential into force where `file` does not do so itself: forgets what was minted with the old
        /// one, and replaces the connections.
        package var renew: @Sendable () -> Void

        package init(
            file: any WatchedCredential, lanes: [LaneKey], renew: @escaping @Sendable () -> Void = {}
        ) {
            self.file = file
            self.lanes = lanes
            self.renew = renew
        }
    }

    private let entries: [Entry]
    private let lanes: PushLanes
    private let provider: Provider
    private let clock: SenderClock
    private let logger: Logger

    package init(
        _ entries: [Entry], lanes: PushLanes, provider: Provider, clock: SenderClock = .system, logger: Logger
    ) {
        self.entries = entries
        self.lanes = lanes
        self.provider = provider
        self.clock = clock
        self.logger = logger
    }

    /// What is wrong with the files as they are now, for readiness; `nil` while nothing is.
    package var trouble: String? {
        let problems = entries.compactMap { $0.file.problem.map { "\($0)" } }
        return problems.isEmpty ? nil : problems.joined(separator: "; ")
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            // Cancelled only when the process stops.
            repeat { await look() } while (try? await clock.sleep(Self.pace)) != nil
        }
    }

    /// One look at every file.
    package func look() async {
        for entry in entries {
            defer { record(entry) }
            let file: Logger.Metadata = ["file": "\(entry.file.path)"]
            switch await entry.file.look() {
            case .unchanged: break
            case .taken:
                count("taken")
                entry.renew()
                for lane in entry.lanes { lanes.mend(lane) }
                logger.notice("the credential file has changed: the new credential is in force", metadata: file)
            case .restored:
                logger.notice("the credential file holds what is in force again", metadata: file)
            case .refused(let error, let oldStays):
                count("refused")
                logger.error(
                    oldStays
                        ? "the credential file has changed and is of no use: the old credential stays in force"
                        : "the credential file is of no use, and there is no older credential",
                    metadata: file.merging(["reason": "\(error)"]) { $1 })
            }
        }
    }

    private func record(_ entry: Entry) {
        guard let expiresAt = entry.file.expiresAt else { return }
        for lane in entry.lanes {
            CertificateExpiry(provider: provider, lane: lane).record(expiresAt, now: clock.now())
        }
    }

    private func count(_ result: String) {
        Counter(
            label: "heliograph_credential_loads_total",
            dimensions: [("provider", provider.rawValue), ("result", result)]
        ).increment()
    }
}

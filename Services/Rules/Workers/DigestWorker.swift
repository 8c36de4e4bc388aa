import Logging
import Metrics
import PushProtocol
import RuleEngine
import ServiceKit
import ServiceLifecycle

/// Closes digest buckets that are due. ``ScheduledSendWorker`` decides and publishes the digests.
///
/// Any number of processes may run it. Runs until graceful shutdown.
struct DigestWorker: Service {
    /// The polling interval when nothing is due.
    static let pace = Duration.milliseconds(500)

    let store: DigestStore
    let currentRules: CurrentRules
    /// The time that processes share (``DatabaseClock``).
    let now: @Sendable () async throws -> Timestamp
    let logger: Logger

    func run() async throws {
        await PeriodicTask(
            every: Self.pace, failureMessage: "Cannot close digests; retrying",
            recoveryMessage: "Closing digests again", logger: logger
        ).run { try await closeDue() }
    }

    func closeDue() async throws {
        while true {
            let (taken, failures) = try await store.close(by: currentRules.ruleSets, now: try await now())
            for failure in failures {
                for item in failure.items {
                    logger.error(
                        "Cannot render a digest; dropping its item. Its rule changed after its items arrived",
                        metadata: [
                            LogKey.app: "\(failure.app)", LogKey.correlation: "\(item.correlation)",
                            LogKey.notification: "\(Hexadecimal.text(of: item.notification))",
                            LogKey.error: "\(failure.error)",
                        ])
                }
            }
            if taken > 0 { Counter(label: "heliograph_rules_digests_closed_total").increment(by: taken) }
            guard taken == DigestStore.batch, !Task.isCancelled else { return }
        }
    }
}

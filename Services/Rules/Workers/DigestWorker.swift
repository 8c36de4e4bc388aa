import Logging
import Metrics
import PushProtocol
import ServiceKit
import ServiceLifecycle

/// Closes what is gathered when its time has come; what it comes to is judged and published by the ``ScheduledSendWorker``. Any number
/// of processes may run it. Runs until graceful shutdown.
struct DigestWorker: Service {
    /// How often it looks when nothing is due.
    static let pace = Duration.milliseconds(500)

    let store: DigestStore
    let currentRules: CurrentRules
    /// The time that processes share (``DatabaseClock``).
    let now: @Sendable () async throws -> Timestamp
    let logger: Logger

    func run() async throws {
        await PeriodicTask(
            every: Self.pace, failureMessage: "Digests cannot be written now; they wait",
            recoveryMessage: "Digests are written again", logger: logger
        ).run { try await closeDue() }
    }

    /// Closes all that is due.
    func closeDue() async throws {
        while true {
            let (taken, failures) = try await store.close(by: currentRules.ruleSets, now: try await now())
            for failure in failures {
                logger.error(
                    "A digest cannot be written and is left out: its rule has changed since its items came",
                    metadata: [LogKey.app: "\(failure.app)", LogKey.error: "\(failure.error)"])
            }
            count(taken)
            guard taken == DigestStore.batch, !Task.isCancelled else { return }
        }
    }

    /// | name | kind | labels | counts |
    /// |---|---|---|---|
    /// | `heliograph_rules_digests_closed_total` | counter | | buckets that were looked at because they were due |
    private func count(_ taken: Int) {
        guard taken > 0 else { return }
        Counter(label: "heliograph_rules_digests_closed_total").increment(by: taken)
    }
}

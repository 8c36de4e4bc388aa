import Logging
import PushProtocol
import ServiceKit
import ServiceLifecycle

/// Counts the results of each rule, hour by hour. Any number of processes may run it. Runs until graceful shutdown.
struct StatsRollup: Service {
    /// The minimum pause between two counts.
    static let pace = Duration.seconds(60)
    /// Counting takes at most `1/share` of the time.
    static let share = 20

    let store: StatsStore
    /// The time that processes share (``DatabaseClock``).
    let now: @Sendable () async throws -> Timestamp
    let logger: Logger

    func run() async throws {
        await PeriodicTask(
            every: Self.pace, failureMessage: "Cannot count rule results; retrying",
            recoveryMessage: "Counting rule results again", logger: logger
        ).runWithOwnPauses {
            let start = ContinuousClock.now
            try await store.count(now: try await now())
            return Self.rest(after: .now - start)
        }
    }

    /// The pause after a count. With very many decisions the counts get older, and the load stays limited.
    static func rest(after elapsed: Duration) -> Duration { max(pace, elapsed * (share - 1)) }
}

import Logging
import PushProtocol
import ServiceKit
import ServiceLifecycle

/// Counts what came of each rule, hour by hour. Any number of processes may run it. Runs until graceful shutdown.
struct StatsRollup: Service {
    /// How often it looks which hours are due.
    static let pace = Duration.seconds(60)
    /// Counting takes at most one part in so many of the time.
    static let share = 20

    let store: StatsStore
    /// The time that processes share (``DatabaseClock``).
    let now: @Sendable () async throws -> Timestamp
    let logger: Logger

    func run() async throws {
        await PeriodicTask(
            every: Self.pace, failureMessage: "What came of the rules cannot be counted now",
            recoveryMessage: "What came of the rules is counted again", logger: logger
        ).runWithOwnPauses {
            let start = ContinuousClock.now
            try await store.count(now: try await now())
            return Self.rest(after: .now - start)
        }
    }

    /// How long it rests after it has counted for so long: where very much is decided, counts are older rather than dear.
    static func rest(after elapsed: Duration) -> Duration { max(pace, elapsed * (share - 1)) }
}

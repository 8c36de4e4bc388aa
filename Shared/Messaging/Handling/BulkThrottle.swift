package import PushProtocol
import Synchronization

/// Slows background work while interactive messages arrive in this process. Background steps are then smaller, and each
/// is followed by a pause proportional to its duration, so that broker, database and CPU stay mostly free. Without
/// interactive messages nothing is slowed.
package final class BulkThrottle: Sendable {
    /// How long after an interactive message background work is throttled.
    package static let quietPeriod = Duration.seconds(1)
    package static let maximumPause = Duration.seconds(1)

    private let pauseFactor: Int
    private let lastInteractive = Mutex<ContinuousClock.Instant?>(nil)
    private let now: @Sendable () -> ContinuousClock.Instant

    /// - Parameter pauseFactor: The length of a pause as a multiple of the preceding step.
    package init(pauseFactor: Int = 3, now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
        self.pauseFactor = pauseFactor
        self.now = now
    }

    /// Records a message on a lane. Only interactive ones count.
    package func noteTraffic(on lane: Lane) {
        switch lane {
        case .interactive: lastInteractive.withLock { $0 = now() }
        case .bulk: break
        }
    }

    /// The size of the next step: `usual`, or `throttled` while interactive messages arrive.
    package func stepSize(_ usual: Int, throttled: Int) -> Int { isThrottling ? throttled : usual }

    /// The pause after a step of duration `work`.
    package func pause(after work: Duration) -> Duration {
        isThrottling ? min(work * pauseFactor, Self.maximumPause) : .zero
    }

    private var isThrottling: Bool {
        guard let lastInteractive = lastInteractive.withLock({ $0 }) else { return false }
        return now() - lastInteractive < Self.quietPeriod
    }
}

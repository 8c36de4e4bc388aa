internal import Synchronization

/// A time that goes on when the test says so.
package final class Uptime: Sendable {
    private let instant = Mutex(ContinuousClock.now)

    package init() {}

    package var now: ContinuousClock.Instant { instant.withLock { $0 } }

    package func pass(_ duration: Duration) { instant.withLock { $0 += duration } }
}

package import PushProtocol
package import PushSending
import Synchronization

/// A virtual clock for senders. Uptime starts at zero, and sleeping advances it. The time of day stays at its start
/// unless `movesTimeOfDay`.
package final class VirtualTime: Sendable {
    private let start: Timestamp
    private let movesTimeOfDay: Bool
    private let passed = Mutex(Duration.zero)
    /// The offset of the time of day from uptime.
    private let correction = Mutex(Duration.zero)

    package init(start: Timestamp = .now, movesTimeOfDay: Bool = false) {
        self.start = start
        self.movesTimeOfDay = movesTimeOfDay
    }

    package var clock: SenderClock {
        SenderClock(
            now: { self.now }, uptime: { self.uptime },
            sleep: { duration in
                try Task.checkCancellation()
                self.advance(by: duration)
            })
    }

    package var now: Timestamp {
        (movesTimeOfDay ? start + uptime : start) + correction.withLock { $0 }
    }

    package var uptime: Duration { passed.withLock { $0 } }

    /// Changes the time of day, as NTP or a resumed machine does. Uptime is unaffected.
    package func correct(by duration: Duration) { correction.withLock { $0 += duration } }

    package func advance(by duration: Duration) { passed.withLock { $0 += duration } }
}

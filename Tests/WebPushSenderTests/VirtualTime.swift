import PushProtocol
import PushSending
import Synchronization

/// A virtual clock. The time of day stays at the current time unless `movesTimeOfDay`; uptime starts at zero.
/// Sleeping advances uptime.
final class VirtualTime: Sendable {
    private let start: Timestamp
    private let movesTimeOfDay: Bool
    private let passed = Mutex(Duration.zero)

    init(movesTimeOfDay: Bool = false) {
        start = .now
        self.movesTimeOfDay = movesTimeOfDay
    }

    var clock: SenderClock {
        SenderClock(
            now: { self.movesTimeOfDay ? self.start + self.uptime : self.start }, uptime: { self.uptime },
            sleep: { duration in
                try Task.checkCancellation()
                self.advance(by: duration)
            })
    }

    var uptime: Duration { passed.withLock { $0 } }

    func advance(by duration: Duration) { passed.withLock { $0 += duration } }
}

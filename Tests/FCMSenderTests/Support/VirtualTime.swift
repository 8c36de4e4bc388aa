import PushProtocol
import PushSending
import Synchronization

/// Clocks that only move when a test says so. The time of day is the simulator's at the start, and stays unless it
/// moves along; uptime begins at zero. Nothing sleeps: who would wait moves uptime on.
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

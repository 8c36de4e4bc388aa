import PushProtocol
import PushSending
import Synchronization

/// A virtual clock that starts at the current time, like the simulator's.
final class VirtualTime: Sendable {
    private let start: Timestamp
    private let passed = Mutex(Duration.zero)
    /// The offset of the time of day from uptime.
    private let correction = Mutex(Duration.zero)

    init(start: Timestamp = .now) { self.start = start }

    /// Sleeping advances the clock.
    var clock: SenderClock {
        SenderClock(
            now: { self.start + self.uptime + self.correction.withLock { $0 } }, uptime: { self.uptime },
            sleep: { duration in
                try Task.checkCancellation()
                self.advance(by: duration)
            })
    }

    var now: Timestamp { clock.now() }
    private var uptime: Duration { passed.withLock { $0 } }

    /// Changes the time of day, as NTP or a resumed machine does. Uptime is unaffected.
    func correct(by duration: Duration) { correction.withLock { $0 += duration } }

    func advance(by duration: Duration) { passed.withLock { $0 += duration } }
}

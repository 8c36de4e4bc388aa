import PushProtocol
import PushSending
import Synchronization

/// Time that starts now, as the simulator's does, and then only moves when a test says so.
final class VirtualTime: Sendable {
    private let start: Timestamp
    private let passed = Mutex(Duration.zero)
    /// How much the time of day was put forward, against uptime.
    private let correction = Mutex(Duration.zero)

    init(start: Timestamp = .now) { self.start = start }

    /// Nothing sleeps in it: who would wait moves it on.
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

    /// Puts the time of day forward, as a time server or a resumed machine does; uptime goes on as it was.
    func correct(by duration: Duration) { correction.withLock { $0 += duration } }

    func advance(by duration: Duration) { passed.withLock { $0 += duration } }
}

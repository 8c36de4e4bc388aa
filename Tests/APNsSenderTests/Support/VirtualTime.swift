import PushProtocol
import PushSending
import Synchronization

/// Time that starts now, as the simulator's does, and then only moves when a test says so.
final class VirtualTime: Sendable {
    private let start: Timestamp
    private let passed = Mutex(Duration.zero)

    init(start: Timestamp = .now) { self.start = start }

    /// Nothing sleeps in it: who would wait moves it on.
    var clock: SenderClock {
        SenderClock(
            now: { self.start + self.uptime }, uptime: { self.uptime },
            sleep: { duration in
                try Task.checkCancellation()
                self.advance(by: duration)
            })
    }

    var now: Timestamp { clock.now() }
    private var uptime: Duration { passed.withLock { $0 } }

    func advance(by duration: Duration) { passed.withLock { $0 += duration } }
}

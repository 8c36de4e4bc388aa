import Messaging
import PushProtocol
import Synchronization
import Testing

@Suite struct BulkThrottleTests {
    @Test func `bulk work is throttled during interactive traffic and shortly after`() {
        let clock = Clock()
        let bulkThrottle = BulkThrottle(pauseFactor: 3, now: { clock.now })
        #expect(bulkThrottle.pause(after: .milliseconds(20)) == .zero)
        #expect(bulkThrottle.stepSize(1000, throttled: 100) == 1000)

        bulkThrottle.noteTraffic(on: .interactive)
        clock.advance(by: BulkThrottle.quietPeriod - .milliseconds(1))
        #expect(bulkThrottle.pause(after: .milliseconds(20)) == .milliseconds(60))
        #expect(bulkThrottle.stepSize(1000, throttled: 100) == 100)

        clock.advance(by: .milliseconds(1))
        #expect(bulkThrottle.pause(after: .milliseconds(20)) == .zero)
        #expect(bulkThrottle.stepSize(1000, throttled: 100) == 1000)
    }

    @Test func `the pause after a slow step is limited`() {
        let bulkThrottle = BulkThrottle(pauseFactor: 3)
        bulkThrottle.noteTraffic(on: .interactive)
        #expect(bulkThrottle.pause(after: .seconds(60)) == BulkThrottle.maximumPause)
    }

    @Test func `bulk traffic does not throttle`() {
        let bulkThrottle = BulkThrottle(pauseFactor: 3)
        bulkThrottle.noteTraffic(on: .bulk)
        #expect(bulkThrottle.pause(after: .seconds(1)) == .zero)
    }
}

private final class Clock: Sendable {
    private let time = Mutex(ContinuousClock.now)
    var now: ContinuousClock.Instant { time.withLock { $0 } }
    func advance(by duration: Duration) { time.withLock { $0 += duration } }
}

import Messaging
import PushProtocol
import Synchronization
import Testing

@Suite struct CourtesyTests {
    @Test func `work makes way while something interactive comes, and a moment longer`() {
        let clock = Clock()
        let courtesy = Courtesy(resting: 3, now: { clock.now })
        #expect(courtesy.rest(after: .milliseconds(20)) == .zero)
        #expect(courtesy.step(of: 1000, orOnly: 100) == 1000)

        courtesy.heard(of: .interactive)
        clock.advance(by: Courtesy.memory - .milliseconds(1))
        #expect(courtesy.rest(after: .milliseconds(20)) == .milliseconds(60))
        #expect(courtesy.step(of: 1000, orOnly: 100) == 100)

        clock.advance(by: .milliseconds(1))
        #expect(courtesy.rest(after: .milliseconds(20)) == .zero)
        #expect(courtesy.step(of: 1000, orOnly: 100) == 1000)
    }

    @Test func `a slow step is no reason to stop altogether`() {
        let courtesy = Courtesy(resting: 3)
        courtesy.heard(of: .interactive)
        #expect(courtesy.rest(after: .seconds(60)) == Courtesy.longestRest)
    }

    @Test func `what is said in bulk holds up nobody`() {
        let courtesy = Courtesy(resting: 3)
        courtesy.heard(of: .bulk)
        #expect(courtesy.rest(after: .seconds(1)) == .zero)
    }
}

private final class Clock: Sendable {
    private let time = Mutex(ContinuousClock.now)
    var now: ContinuousClock.Instant { time.withLock { $0 } }
    func advance(by duration: Duration) { time.withLock { $0 += duration } }
}

import PushProtocol
import Synchronization
import Testing

@testable import TokenRegistry

@Suite struct CourtesyTests {
    @Test func `campaigns make way while interactive notifications come, and a moment longer`() {
        let clock = Clock()
        let courtesy = Courtesy(now: { clock.now })
        #expect(courtesy.rest(after: .milliseconds(20)) == .zero)
        #expect(courtesy.stepSize == CampaignSteps.usualSize)

        courtesy.heard(of: .interactive)
        clock.advance(by: Courtesy.memory - .milliseconds(1))
        #expect(courtesy.rest(after: .milliseconds(20)) == .milliseconds(60))
        #expect(courtesy.stepSize == Courtesy.smallStep)

        clock.advance(by: .milliseconds(1))
        #expect(courtesy.rest(after: .milliseconds(20)) == .zero)
        #expect(courtesy.stepSize == CampaignSteps.usualSize)
    }

    @Test func `a slow step is no reason to stop altogether`() {
        let courtesy = Courtesy()
        courtesy.heard(of: .interactive)
        #expect(courtesy.rest(after: .seconds(60)) == Courtesy.longestRest)
    }

    @Test func `what is said in bulk holds up nobody`() {
        let courtesy = Courtesy()
        courtesy.heard(of: .bulk)
        #expect(courtesy.rest(after: .seconds(1)) == .zero)
    }
}

private final class Clock: Sendable {
    private let time = Mutex(ContinuousClock.now)
    var now: ContinuousClock.Instant { time.withLock { $0 } }
    func advance(by duration: Duration) { time.withLock { $0 += duration } }
}

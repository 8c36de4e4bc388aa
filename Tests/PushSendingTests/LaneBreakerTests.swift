import PushSending
import Testing

@Suite struct LaneBreakerTests {
    private func opened(_ report: LaneBreaker.Report) -> LaneBreaker {
        var breaker = LaneBreaker()
        _ = breaker.report(report, now: .zero)
        return breaker
    }

    @Test func `a refused credential shuts the lane at once, for half a minute`() {
        var breaker = LaneBreaker()
        let change = breaker.report(.misconfigured(reason: "BadTopic"), now: .zero)
        #expect(change == .opened(.misconfigured(reason: "BadTopic"), pause: .seconds(30)))
        #expect(
            breaker.admit(now: .seconds(10)) == .closed(for: .seconds(20), .misconfigured(reason: "BadTopic")))
    }

    @Test func `one push probes when the pause is over, and the others wait for it`() {
        var breaker = opened(.misconfigured(reason: "BadTopic"))
        #expect(breaker.admit(now: .seconds(30)) == .probe)
        #expect(breaker.admit(now: .seconds(30)) == .wait)
        #expect(breaker.reportProbe(.answered, now: .seconds(31)) == .closed)
        #expect(breaker.admit(now: .seconds(31)) == .open)
    }

    @Test func `each failed probe doubles the pause, up to a quarter of an hour`() {
        var breaker = opened(.misconfigured(reason: "BadTopic"))
        var now = Duration.seconds(30)
        for pause in [60, 120, 240, 480, 900, 900] {
            #expect(breaker.admit(now: now) == .probe)
            let change = breaker.reportProbe(.misconfigured(reason: "BadTopic"), now: now)
            #expect(change == .opened(.misconfigured(reason: "BadTopic"), pause: .seconds(pause)))
            now += .seconds(pause)
        }
    }

    @Test func `errors in a row shut the lane, and one answer forgets them`() {
        var breaker = LaneBreaker(tolerance: 3)
        #expect(breaker.report(.unavailable(reason: "HTTP 502"), now: .zero) == nil)
        #expect(breaker.report(.unavailable(reason: "HTTP 502"), now: .zero) == nil)
        #expect(breaker.report(.answered, now: .zero) == nil)
        #expect(breaker.report(.unavailable(reason: "HTTP 502"), now: .zero) == nil)
        #expect(breaker.report(.unavailable(reason: "HTTP 502"), now: .zero) == nil)
        let change = breaker.report(.unavailable(reason: "HTTP 502"), now: .zero)
        #expect(change == .opened(.unavailable(reason: "HTTP 502"), pause: .seconds(5)))
    }

    @Test func `a provider out of reach shuts the lane at once, for at most half a minute`() {
        var breaker = opened(.unreachable(reason: "connect-failed"))
        #expect(breaker.admit(now: .seconds(5)) == .probe)
        for pause in [10, 20, 30, 30] {
            let change = breaker.reportProbe(.unreachable(reason: "connect-failed"), now: .zero)
            #expect(change == .opened(.unavailable(reason: "connect-failed"), pause: .seconds(pause)))
            #expect(breaker.admit(now: .seconds(pause)) == .probe)
        }
    }

    @Test func `answers to what was sent before do not open a lane that is shut`() {
        var breaker = opened(.misconfigured(reason: "BadTopic"))
        #expect(breaker.report(.answered, now: .zero) == nil)
        #expect(breaker.trouble == .misconfigured(reason: "BadTopic"))
    }

    @Test func `a probe that sent nothing lets the next push probe at once`() {
        var breaker = opened(.misconfigured(reason: "BadTopic"))
        #expect(breaker.admit(now: .seconds(30)) == .probe)
        #expect(breaker.reportProbe(.nothing, now: .seconds(31)) == nil)
        #expect(breaker.admit(now: .seconds(31)) == .probe)
    }
}

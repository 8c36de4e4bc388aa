import PushSending
import Testing

@Suite struct CircuitBreakerTests {
    private func opened(_ observation: CircuitBreaker.Observation) -> CircuitBreaker {
        var breaker = CircuitBreaker()
        _ = breaker.record(observation, now: .zero)
        return breaker
    }

    @Test func `given a rejected credential, then the breaker opens at once for 30 seconds`() {
        var breaker = CircuitBreaker()
        let change = breaker.record(.misconfigured(reason: "BadTopic"), now: .zero)
        #expect(change == .opened(.misconfigured(reason: "BadTopic"), pause: .seconds(30)))
        #expect(
            breaker.admit(now: .seconds(10)) == .blocked(for: .seconds(20), .misconfigured(reason: "BadTopic")))
    }

    @Test func `after the pause one push probes and the others wait`() {
        var breaker = opened(.misconfigured(reason: "BadTopic"))
        #expect(breaker.admit(now: .seconds(30)) == .probe)
        #expect(breaker.admit(now: .seconds(30)) == .wait)
        #expect(breaker.recordProbe(.answered, now: .seconds(31)) == .closed)
        #expect(breaker.admit(now: .seconds(31)) == .allowed)
    }

    @Test func `each failed probe doubles the pause, up to 15 minutes`() {
        var breaker = opened(.misconfigured(reason: "BadTopic"))
        var now = Duration.seconds(30)
        for pause in [60, 120, 240, 480, 900, 900] {
            #expect(breaker.admit(now: now) == .probe)
            let change = breaker.recordProbe(.misconfigured(reason: "BadTopic"), now: now)
            #expect(change == .opened(.misconfigured(reason: "BadTopic"), pause: .seconds(pause)))
            now += .seconds(pause)
        }
    }

    @Test func `errors in a row open the breaker; an answer resets their count`() {
        var breaker = CircuitBreaker(tolerance: 3)
        #expect(breaker.record(.unavailable(reason: "HTTP 502"), now: .zero) == nil)
        #expect(breaker.record(.unavailable(reason: "HTTP 502"), now: .zero) == nil)
        #expect(breaker.record(.answered, now: .zero) == nil)
        #expect(breaker.record(.unavailable(reason: "HTTP 502"), now: .zero) == nil)
        #expect(breaker.record(.unavailable(reason: "HTTP 502"), now: .zero) == nil)
        let change = breaker.record(.unavailable(reason: "HTTP 502"), now: .zero)
        #expect(change == .opened(.unavailable(reason: "HTTP 502"), pause: .seconds(5)))
    }

    @Test func `given an unreachable provider, then the breaker opens at once for at most 30 seconds`() {
        var breaker = opened(.unreachable(reason: "connect-failed"))
        #expect(breaker.admit(now: .seconds(5)) == .probe)
        for pause in [10, 20, 30, 30] {
            let change = breaker.recordProbe(.unreachable(reason: "connect-failed"), now: .zero)
            #expect(change == .opened(.unavailable(reason: "connect-failed"), pause: .seconds(pause)))
            #expect(breaker.admit(now: .seconds(pause)) == .probe)
        }
    }

    @Test func `late answers do not close an open breaker`() {
        var breaker = opened(.misconfigured(reason: "BadTopic"))
        #expect(breaker.record(.answered, now: .zero) == nil)
        #expect(breaker.openCause == .misconfigured(reason: "BadTopic"))
    }

    @Test func `given a probe that sent nothing, then the next push probes at once`() {
        var breaker = opened(.misconfigured(reason: "BadTopic"))
        #expect(breaker.admit(now: .seconds(30)) == .probe)
        #expect(breaker.recordProbe(.nothing, now: .seconds(31)) == nil)
        #expect(breaker.admit(now: .seconds(31)) == .probe)
    }
}

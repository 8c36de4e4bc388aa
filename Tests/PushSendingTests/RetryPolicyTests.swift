import Messaging
import Providers
import PushProtocol
import Testing
import TestSupport

@testable import PushSending

@Suite struct RetryPolicyTests {
    private let policy = RetryPolicy()

    private func backoff(
        _ floor: Duration, attempt: Int = 1, firstSeen: Timestamp = .sample, ttl: Duration? = nil
    ) -> RetryPolicy.BackoffDecision {
        policy.backoff(
            floor: floor, attempt: attempt, firstSeen: firstSeen, expiresAt: ttl.map { .sample + $0 }, now: .sample)
    }

    @Test(arguments: [
        (Duration.seconds(10), RetryLevel.seconds30), (.seconds(45), .minutes2), (.seconds(60), .minutes2),
        (.seconds(120), .minutes2), (.seconds(900), .minutes15), (.zero, .seconds30),
    ])
    func `the first delay is the shortest level not below the floor`(floor: Duration, level: RetryLevel) {
        #expect(backoff(floor) == .retry(level))
        #expect(level.delay >= floor)
    }

    @Test(arguments: [(1, RetryLevel.seconds30), (2, .seconds30), (3, .minutes2), (5, .minutes15), (60, .minutes15)])
    func `delays double with each attempt, up to 15 minutes`(attempt: Int, level: RetryLevel) {
        #expect(backoff(.seconds(10), attempt: attempt) == .retry(level))
    }

    @Test func `given a next attempt after the expiration, then the push is expired`() {
        #expect(backoff(.seconds(900), ttl: .seconds(60)) == .expired)
        #expect(backoff(.seconds(10), ttl: .seconds(30)) == .expired)
        #expect(backoff(.seconds(10), ttl: .seconds(31)) == .retry(.seconds30))
    }

    @Test func `an hour after its first delivery a push is exhausted`() {
        let firstSeen = Timestamp(milliseconds: Timestamp.sample.milliseconds - 50 * 60 * 1000)
        #expect(backoff(.seconds(900), attempt: 4, firstSeen: firstSeen) == .exhausted(.minutes15))
        #expect(backoff(.seconds(10), firstSeen: firstSeen) == .retry(.seconds30))
    }

    @Test func `time on a paused route does not exhaust a push`() {
        let firstSeen = Timestamp(milliseconds: Timestamp.sample.milliseconds - 24 * 3600 * 1000)
        for attempt in 1...3 {
            let decision = backoff(.seconds(900), attempt: attempt, firstSeen: firstSeen)
            #expect(decision == .retry(.minutes15))
        }
    }

    @Test func `the eighth attempt is the last, before the runtime's limit`() {
        var waited = Duration.zero
        for attempt in 1..<StagePolicy().maximumAttempts {
            guard case .retry(let level) = backoff(.zero, attempt: attempt, firstSeen: .sample - waited) else {
                Issue.record("given up after \(attempt)")
                return
            }
            waited += level.delay
        }
        let last = backoff(.zero, attempt: StagePolicy().maximumAttempts, firstSeen: .sample - waited)
        #expect(last == .exhausted(.minutes15))
    }

    @Test(
        arguments: [
            (30, nil, .seconds30), (29.9, nil, .seconds30), (60, nil, .seconds30), (900, nil, .minutes15),
            (2, nil, .seconds5),
            (120, 60, .seconds30), (120, 30, .seconds5), (30, 6, .seconds5), (30, 2, .seconds5),
        ] as [(Double, Double?, RetryLevel)])
    func `a held push waits within its pause and its expiration`(
        pause: Double, ttl: Double?, level: RetryLevel
    ) {
        let expiresAt = ttl.map { Timestamp.sample + .seconds($0) }
        #expect(policy.hold(for: .seconds(pause), expiresAt: expiresAt, now: .sample) == level)
    }
}

@Suite struct RetryAfterTests {
    @Test(
        arguments: [
            ("120", Duration.seconds(120)), ("1", .seconds(1)), ("Thu, 01 Jan 2026 00:00:45 GMT", .seconds(45)),
            ("Sun, 01 Mar 2026 00:00:00 GMT", nil), ("Fri, 02 Jan 2026 00:00:00 GMT", .seconds(86400)),
        ] as [(String, Duration?)])
    func `seconds and dates are parsed`(text: String, delay: Duration?) {
        #expect(RetryAfter.delay(text, now: .sample) == delay)
    }

    @Test(
        arguments: [
            nil, "", "0", "-5", "soon", "1.5", "99999999999", "99999999999999999999", "Thu, 01 Jan 2026 00:00:00 GMT",
            "Wed, 31 Dec 2025 23:59:59 GMT", "Thu, 01 Foo 2026 00:00:45 GMT", "Thu, 01 Jan 2026 00:00:45 CET",
            "Thu, 01 Jan 2026 25:00:45 GMT",
        ] as [String?])
    func `zero, past and unreadable values are ignored`(text: String?) {
        #expect(RetryAfter.delay(text, now: .sample) == nil)
    }
}

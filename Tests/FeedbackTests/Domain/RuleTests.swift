import FoundationEssentials
import PushProtocol
import Testing

@testable import Feedback
@testable import FeedbackStore

/// Tests decisions about suspect tokens (ProviderFacts.md §C.4).
@Suite struct SuspicionRuleTests {
    private func suspect(
        _ reason: String = "BadDeviceToken", environment: ProviderEnvironment? = .production, suspicions: Int = 1
    ) -> Evidence {
        Evidence(
            key: .init(notification: Batches.notification(1), device: Batches.device(1)),
            route: FeedbackRoute(app: Batches.app, origin: .apns, environment: environment), verdict: .suspect,
            reason: reason, goneSince: nil, registeredAt: Batches.registered, observedAt: .start,
            suspicions: suspicions, trace: Trace(id: Batches.sender, correlation: "e", causation: "p"))
    }

    private let rule = SuspicionRule()

    private func evaluate(
        _ evidence: Evidence, acceptedAt: Timestamp?, by rule: SuspicionRule? = nil,
        reportedSpikes: [RouteHealth.BadTokenSpike] = []
    ) -> Evaluation {
        (rule ?? self.rule).evaluate(evidence, acceptedAt: acceptedAt, reportedSpikes: reportedSpikes)
    }

    @Test(arguments: ["BadDeviceToken", "SENDER_ID_MISMATCH", "malformed-token"])
    func `B06: a rejection is approved if its route accepted a push within the hour`(reason: String) {
        #expect(evaluate(suspect(reason), acceptedAt: .start + .seconds(-3600)) == .approve)
        #expect(evaluate(suspect(reason), acceptedAt: .start + .seconds(5)) == .approve)
    }

    @Test func `a rejection on a route without recent acceptances is quarantined`() {
        #expect(evaluate(suspect(), acceptedAt: nil) == .quarantine(.routeSilent))
        #expect(evaluate(suspect(), acceptedAt: .start + .milliseconds(-3_600_001)) == .quarantine(.routeSilent))
    }

    @Test func `B07: a rejection in an unknown environment is quarantined`() {
        #expect(evaluate(suspect(environment: nil), acceptedAt: .start) == .quarantine(.environmentUnknown))
    }

    @Test func `B20: a push of the wrong kind is no sufficient evidence`() {
        #expect(evaluate(suspect("DeviceTokenNotForTopic"), acceptedAt: .start) == .keep)
    }

    @Test(arguments: ["INVALID_ARGUMENT", "DeviceTokenNotForTopic", "A reason of tomorrow"])
    func `a reason that may be the payload's fault is kept, and quarantined after three notifications`(reason: String) {
        #expect(evaluate(suspect(reason, suspicions: 2), acceptedAt: .start) == .keep)
        for suspicions in [3, 4, 100] {
            #expect(
                evaluate(suspect(reason, suspicions: suspicions), acceptedAt: .start) == .quarantine(.reasonUnclear))
        }
    }

    @Test func `B08: suspect rejections during a reported spike are quarantined`() {
        let spike = RouteHealth.BadTokenSpike(since: .start + .seconds(-60), until: .start + .seconds(5))
        for offset in [-60, -30, 0, 5] {
            var evidence = suspect()
            evidence.observedAt = .start + .seconds(offset)
            #expect(evaluate(evidence, acceptedAt: .start, reportedSpikes: [spike]) == .quarantine(.badTokenSpike))
            evidence.verdict = .gone
            #expect(evaluate(evidence, acceptedAt: .start, reportedSpikes: [spike]) == .approve)
        }
        for offset in [-61, 6] {
            var evidence = suspect()
            evidence.observedAt = .start + .seconds(offset)
            #expect(evaluate(evidence, acceptedAt: .start, reportedSpikes: [spike]) == .approve)
        }
        #expect(
            evaluate(suspect("INVALID_ARGUMENT"), acceptedAt: .start, reportedSpikes: [spike])
                == .quarantine(.badTokenSpike))
    }

    @Test func `the required number of notifications is configurable`() {
        let strict = SuspicionRule(clear: 2)
        #expect(evaluate(suspect(), acceptedAt: .start, by: strict) == .keep)
        #expect(evaluate(suspect(suspicions: 2), acceptedAt: .start, by: strict) == .approve)
    }

    @Test func `a 410 is approved without recent acceptances on the route`() {
        var gone = suspect()
        gone.verdict = .gone
        #expect(evaluate(gone, acceptedAt: nil) == .approve)
    }
}

/// Tests the detection of bad-token spikes (ProviderFacts.md §C.4).
@Suite struct GuardRuleTests {
    private let rule = GuardRule()

    private func minute(_ offset: Int, _ refused: Int, _ answered: Int, times: Int = 1) -> RouteMinute {
        RouteMinute(
            minute: .start + .seconds(60 * offset), registrations: refused, refused: refused * times,
            answered: answered * times)
    }

    private func spike(_ refused: Int, of answered: Int) -> ObservedSpike {
        ObservedSpike(registrations: refused, refused: refused, answered: answered)
    }

    @Test func `the number of pushes to each token makes no difference`() {
        for times in [1, 5, 100] {
            #expect(rule.spike(in: [minute(0, 30, 100, times: times)], normalShare: 0) != nil)
            #expect(rule.spike(in: [minute(0, 30, 600, times: times)], normalShare: 0) == nil)
            #expect(rule.spike(in: [minute(0, 19, 19, times: times)], normalShare: 0) == nil)
        }
    }

    @Test func `B08: thirty rejections of a hundred answers are a spike`() {
        #expect(rule.spike(in: [minute(0, 30, 100)], normalShare: 0) == spike(30, of: 100))
    }

    @Test func `a spike across a minute's edge is detected`() {
        let pair = [minute(0, 15, 50), minute(1, 15, 50)]
        #expect(rule.spike(in: pair, normalShare: 0) == spike(30, of: 100))
        #expect(rule.spike(in: [minute(0, 15, 50), minute(2, 15, 50)], normalShare: 0) == nil)
    }

    @Test func `few rejections are no spike, and neither is a small share`() {
        #expect(rule.spike(in: [minute(0, 19, 19)], normalShare: 0) == nil)
        #expect(rule.spike(in: [minute(0, 20, 20)], normalShare: 0) != nil)
        #expect(rule.spike(in: [minute(0, 5000, 100_000)], normalShare: 0) == nil)
        #expect(rule.spike(in: [minute(0, 5001, 100_000)], normalShare: 0) != nil)
    }

    @Test func `the normal share raises the threshold, up to one half`() {
        #expect(rule.spike(in: [minute(0, 110, 1000)], normalShare: 0.04) == nil)
        #expect(rule.spike(in: [minute(0, 130, 1000)], normalShare: 0.04) != nil)
        #expect(rule.spike(in: [minute(0, 501, 1000)], normalShare: 0.9) != nil)
    }

    @Test func `too few answers give a normal share of 0`() {
        #expect(rule.normalShare(believed: 1, answered: 2) == 0)
        #expect(rule.normalShare(believed: 200, answered: 399) == 0)
        #expect(rule.normalShare(believed: 20, answered: 400) == 0.05)
        #expect(rule.normalShare(believed: 0, answered: 0) == 0)
        #expect(GuardRule(share: 0.5, minimum: 2).normalShare(believed: 1, answered: 4) == 0.25)
    }

    @Test func `without reported answers, the share of rejections counts as 1`() {
        #expect(rule.spike(in: [minute(0, 20, 0)], normalShare: 0) == spike(20, of: 20))
    }

    @Test func `a guard stays tripped for the hold time after the last spike`() {
        let tripped = rule.next(.atRest, isSpike: true, now: .start)
        #expect(tripped == .tripped(since: .start, until: .start + .seconds(900)))
        #expect(rule.next(.atRest, isSpike: false, now: .start) == .atRest)
        #expect(rule.next(tripped, isSpike: false, now: .start + .seconds(899)) == tripped)
        #expect(rule.next(tripped, isSpike: false, now: .start + .seconds(900)) == .atRest)
        #expect(
            rule.next(tripped, isSpike: true, now: .start + .seconds(600))
                == .tripped(since: .start, until: .start + .seconds(1500)))
    }
}

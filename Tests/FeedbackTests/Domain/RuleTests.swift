import FoundationEssentials
import PushProtocol
import Testing

@testable import Feedback

/// Tests decisions about suspect tokens (ProviderFacts.md §C.4).
@Suite struct SuspicionRuleTests {
    private func suspect(
        _ reason: String = "BadDeviceToken", environment: ProviderEnvironment? = .production, suspicions: Int = 1
    ) -> Evidence {
        Evidence(
            key: .init(notification: Batches.notification(1), device: Batches.device(1)),
            lane: FeedbackRoute(app: Batches.app, origin: .apns, environment: environment), verdict: .suspect,
            reason: reason, goneSince: nil, registeredAt: Batches.registered, observedAt: .start,
            suspicions: suspicions, trace: Trace(id: Batches.sender, correlation: "e", causation: "p"))
    }

    private let rule = SuspicionRule()

    private func evaluate(
        _ evidence: Evidence, acceptedAt: Timestamp?, by rule: SuspicionRule? = nil,
        storms: [RouteHealth.BadTokenSpike] = []
    ) -> Evaluation {
        (rule ?? self.rule).evaluate(evidence, acceptedAt: acceptedAt, storms: storms)
    }

    @Test(arguments: ["BadDeviceToken", "SENDER_ID_MISMATCH", "malformed-token"])
    func `B06: a rejection is approved if its route accepted a push within the hour`(reason: String) {
        #expect(evaluate(suspect(reason), acceptedAt: .start + .seconds(-3600)) == .approve)
        #expect(evaluate(suspect(reason), acceptedAt: .start + .seconds(5)) == .approve)
    }

    @Test func `a rejection on a route without recent acceptances is quarantined`() {
        #expect(evaluate(suspect(), acceptedAt: nil) == .quarantine(.laneSilent))
        #expect(evaluate(suspect(), acceptedAt: .start + .milliseconds(-3_600_001)) == .quarantine(.laneSilent))
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
        let storm = RouteHealth.BadTokenSpike(since: .start + .seconds(-60), until: .start + .seconds(5))
        for offset in [-60, -30, 0, 5] {
            var evidence = suspect()
            evidence.observedAt = .start + .seconds(offset)
            #expect(evaluate(evidence, acceptedAt: .start, storms: [storm]) == .quarantine(.storm))
            evidence.verdict = .gone
            #expect(evaluate(evidence, acceptedAt: .start, storms: [storm]) == .approve)
        }
        for offset in [-61, 6] {
            var evidence = suspect()
            evidence.observedAt = .start + .seconds(offset)
            #expect(evaluate(evidence, acceptedAt: .start, storms: [storm]) == .approve)
        }
        #expect(evaluate(suspect("INVALID_ARGUMENT"), acceptedAt: .start, storms: [storm]) == .quarantine(.storm))
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

    private func storm(_ refused: Int, of answered: Int) -> Storm {
        Storm(registrations: refused, refused: refused, answered: answered)
    }

    @Test func `the number of pushes to each token makes no difference`() {
        for times in [1, 5, 100] {
            #expect(rule.storm(in: [minute(0, 30, 100, times: times)], usual: 0) != nil)
            #expect(rule.storm(in: [minute(0, 30, 600, times: times)], usual: 0) == nil)
            #expect(rule.storm(in: [minute(0, 19, 19, times: times)], usual: 0) == nil)
        }
    }

    @Test func `B08: thirty rejections of a hundred answers are a spike`() {
        #expect(rule.storm(in: [minute(0, 30, 100)], usual: 0) == storm(30, of: 100))
    }

    @Test func `a spike across a minute's edge is detected`() {
        let pair = [minute(0, 15, 50), minute(1, 15, 50)]
        #expect(rule.storm(in: pair, usual: 0) == storm(30, of: 100))
        #expect(rule.storm(in: [minute(0, 15, 50), minute(2, 15, 50)], usual: 0) == nil)
    }

    @Test func `few rejections are no spike, and neither is a small share`() {
        #expect(rule.storm(in: [minute(0, 19, 19)], usual: 0) == nil)
        #expect(rule.storm(in: [minute(0, 20, 20)], usual: 0) != nil)
        #expect(rule.storm(in: [minute(0, 5000, 100_000)], usual: 0) == nil)
        #expect(rule.storm(in: [minute(0, 5001, 100_000)], usual: 0) != nil)
    }

    @Test func `the normal share raises the threshold, up to one half`() {
        #expect(rule.storm(in: [minute(0, 110, 1000)], usual: 0.04) == nil)
        #expect(rule.storm(in: [minute(0, 130, 1000)], usual: 0.04) != nil)
        #expect(rule.storm(in: [minute(0, 501, 1000)], usual: 0.9) != nil)
    }

    @Test func `too few answers give a normal share of 0`() {
        #expect(rule.usual(believed: 1, answered: 2) == 0)
        #expect(rule.usual(believed: 200, answered: 399) == 0)
        #expect(rule.usual(believed: 20, answered: 400) == 0.05)
        #expect(rule.usual(believed: 0, answered: 0) == 0)
        #expect(GuardRule(share: 0.5, minimum: 2).usual(believed: 1, answered: 4) == 0.25)
    }

    @Test func `without reported answers, the share of rejections counts as 1`() {
        #expect(rule.storm(in: [minute(0, 20, 0)], usual: 0) == storm(20, of: 20))
    }

    @Test func `a guard stays tripped for the hold time after the last spike`() {
        let tripped = rule.next(.atRest, isStorm: true, now: .start)
        #expect(tripped == .tripped(since: .start, until: .start + .seconds(900)))
        #expect(rule.next(.atRest, isStorm: false, now: .start) == .atRest)
        #expect(rule.next(tripped, isStorm: false, now: .start + .seconds(899)) == tripped)
        #expect(rule.next(tripped, isStorm: false, now: .start + .seconds(900)) == .atRest)
        #expect(
            rule.next(tripped, isStorm: true, now: .start + .seconds(600))
                == .tripped(since: .start, until: .start + .seconds(1500)))
    }
}

import FoundationEssentials
import Logging
import Messaging
import PushProtocol
import TestSupport
import Testing
@testable import PushSending

/// Who pauses is counted by nobody among those that share a quota, and begins slowly when its pause is over.
@Suite(.timeLimit(.minutes(2))) struct SlowBeginningTests {
    private let time = ManualTime()
    private let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    private let keys = ["one", "two"].map { LaneKey(app: AppID(rawValue: $0)!, environment: .production) }

    /// Two lanes of a quota of a thousand a second, of which some have been shut and may probe now.
    private func lanes(shut: [LaneKey]) -> (PushLanes, QuotaGate) {
        let quota = QuotaGate("project", provider: .fcm, perMinute: 64_000, clock: time.clock, logger: logger)
        let gateways = Dictionary(
            uniqueKeysWithValues: keys.map { ($0, ScriptedGateway(quota: quota) as any PushGateway) })
        let lanes = PushLanes(gateways, provider: .fcm, clock: time.clock, logger: logger)
        time.advance(by: .seconds(120))
        for key in shut { lanes[key]?.gate.report(.misconfigured(reason: "IAM")) }
        for key in shut { lanes.mend(key) }
        return (lanes, quota)
    }

    /// A second's worth at the rate of the moment.
    private func grant(_ quota: QuotaGate) async -> QuotaGate.Admission {
        await quota.admit(1000, .interactive, until: time.clock.uptime())
    }

    @Test func `all lanes of a quota were shut: whichever is first begins with a twentieth`() async {
        let (lanes, quota) = lanes(shut: keys)
        for key in keys { _ = await lanes.probe(key) }
        // Two of them went to probes.
        #expect(await grant(quota) == .granted(48))
    }

    @Test func `another lane was open all the time: nothing has to begin`() async {
        let (lanes, quota) = lanes(shut: [keys[0]])
        _ = await lanes.probe(keys[0])
        #expect(await grant(quota) == .granted(999))
    }

    @Test func `a push that probes begins as slowly, before others go`() async throws {
        let (lanes, quota) = lanes(shut: keys)
        let handler = PushStageHandler(provider: .fcm, lanes: lanes, clock: time.clock, logger: logger)
        let push = Push.sample(provider: .fcm, app: "one")
        let inbound = Inbound(
            queue: .senderPushes(.fcm, .interactive, push.app), exchange: "pushes", routingKey: "k",
            body: try push.wireBody(), attempt: 1, firstSeen: .sample)
        let verdicts = try await handler.handle([Delivery(inbound: inbound, message: push)])
        #expect(verdicts.count == 1 && lanes.trouble(of: keys[0]) == nil)
        #expect(await grant(quota) == .granted(49))
    }
}

import FoundationEssentials
import Logging
import Messaging
import PushProtocol
@testable import PushSending
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(2))) struct LaneSupervisorTests {
    private let app = AppID(rawValue: "demo")!
    private let time = ManualTime()
    private let gateway = ScriptedGateway { _, _ in .halted(reason: "BadTopic") }

    private func lanes(_ environments: [ProviderEnvironment]) -> PushLanes {
        PushLanes(
            Dictionary(uniqueKeysWithValues: environments.map { (LaneKey(app: app, environment: $0), gateway) }),
            provider: .apns, clock: time.clock, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    private func supervised(
        _ lanes: PushLanes, _ body: (SwitchLog) async throws -> Void
    ) async throws {
        let log = SwitchLog()
        let supervisor = LaneSupervisor(
            lanes: lanes, provider: .apns, clock: time.clock,
            pause: { log.add("pause", $0) },
            resume: { log.add("resume", $0) })
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await supervisor.run() }
            try await body(log)
            group.cancelAll()
        }
    }

    private func names(_ word: String) -> [String] {
        Lane.allCases.map { "\(word) apns-sender.pushes.\($0.rawValue).demo" }
    }

    @Test func `a lane that shuts pauses both queues of its app, and the end of the pause resumes them`() async throws {
        let lanes = lanes([.production])
        try await supervised(lanes) { log in
            lanes[LaneKey(app: app, environment: .production)]?.gate.report(.misconfigured(reason: "BadTopic"))
            try await eventually(within: .seconds(60)) { log.lines == names("pause") && time.sleepers == 1 }
            time.advance(by: .seconds(30))
            try await eventually(within: .seconds(60)) { log.lines == names("pause") + names("resume") }
        }
    }

    @Test func `an app whose other environment works keeps its queues`() async throws {
        let lanes = lanes([.production, .development])
        try await supervised(lanes) { log in
            lanes[LaneKey(app: app, environment: .development)]?.gate.report(.misconfigured(reason: "BadTopic"))
            lanes[LaneKey(app: app, environment: .production)]?.gate.report(.misconfigured(reason: "BadTopic"))
            try await eventually(within: .seconds(60)) { log.lines == names("pause") }
        }
    }

    /// Lets so much time pass as soon as somebody waits for it.
    private func wait(_ duration: Duration) async throws {
        try await eventually(within: .seconds(60)) { time.sleepers == 1 }
        time.advance(by: duration)
    }

    @Test func `a lane that nobody pushes to is probed when its pause is over, and opens by itself`() async throws {
        let lanes = lanes([.production, .development])
        let idle = LaneKey(app: app, environment: .development)
        gateway.answer { _, _ in .settled(.rejected(reason: "BadDeviceToken", suspectToken: true)) }
        try await supervised(lanes) { log in
            lanes[idle]?.gate.report(.misconfigured(reason: "BadTopic"))
            try await wait(.seconds(30))
            try await wait(.seconds(4))
            #expect(gateway.sent.isEmpty)
            time.advance(by: .seconds(1))
            try await eventually(within: .seconds(60)) { lanes.trouble(of: idle) == nil }
            #expect(gateway.sent.map(\.secret) == [String(repeating: "0", count: 64)])
            #expect(log.lines.isEmpty)
        }
    }

    @Test func `a probe that fails is followed by another, after twice the pause`() async throws {
        let lanes = lanes([.production])
        let key = LaneKey(app: app, environment: .production)
        try await supervised(lanes) { log in
            lanes[key]?.gate.report(.misconfigured(reason: "BadTopic"))
            for (probes, pause) in [30, 60, 120].enumerated() {
                try await wait(.seconds(pause))
                try await wait(LaneSupervisor.grace)
                try await eventually(within: .seconds(60)) { gateway.sent.count == probes + 1 }
            }
            #expect(lanes.trouble(of: key) == .misconfigured(reason: "BadTopic"))
        }
    }

    @Test func `a probe of which nothing comes is followed by another`() async throws {
        let lanes = lanes([.production])
        let key = LaneKey(app: app, environment: .production)
        gateway.answer { _, call in call == 1 ? .deferred(reason: "queue-full") : .settled(.accepted(id: nil)) }
        try await supervised(lanes) { log in
            lanes[key]?.gate.report(.misconfigured(reason: "BadTopic"))
            try await wait(.seconds(30))
            try await wait(LaneSupervisor.grace)
            try await eventually(within: .seconds(60)) { gateway.sent.count == 1 }
            #expect(lanes.trouble(of: key) != nil)
            try await wait(.seconds(30))
            try await eventually(within: .seconds(60)) { lanes.trouble(of: key) == nil }
        }
    }

    @Test func `a lane whose credential was mended is probed soon, without its pause`() async throws {
        let lanes = lanes([.production])
        let key = LaneKey(app: app, environment: .production)
        gateway.answer { _, _ in .settled(.accepted(id: nil)) }
        try await supervised(lanes) { log in
            lanes[key]?.gate.report(.misconfigured(reason: "BadTopic"))
            try await eventually(within: .seconds(60)) { log.lines == names("pause") && time.sleepers == 1 }
            lanes.mend(key)
            try await eventually(within: .seconds(60)) {
                log.lines == names("pause") + names("resume") && time.sleepers == 2
            }
            time.advance(by: LaneSupervisor.grace)
            try await eventually(within: .seconds(60)) { lanes.trouble(of: key) == nil }
            #expect(gateway.sent.count == 1)
        }
    }

    @Test func `nothing is probed that a push has probed, that pauses still, or that a storm has shut`() async throws {
        let lanes = lanes([.production, .development])
        let key = LaneKey(app: app, environment: .production)
        let gate = try #require(lanes[key]?.gate)
        #expect(await !lanes.probe(key))
        gate.report(.misconfigured(reason: "BadTopic"))
        #expect(await !lanes.probe(key))
        time.advance(by: .seconds(30))
        #expect(await gate.admit() == .probe)
        #expect(await !lanes.probe(key))
        gate.reportProbe(.answered)

        let doubted = (0..<30).map { Copy(of: 0, to: .sample(token: "\($0)")) }
        var round = PushRound(
            copies: doubted,
            answers: doubted.map { _ in .settled(.rejected(reason: "BadDeviceToken", suspectToken: true)) })
        gate.judge(&round, isProbe: false)
        gate.report(round.report)
        time.advance(by: .seconds(30))
        #expect(await !lanes.probe(key))
        #expect(gateway.sent.isEmpty)
    }

    @Test func `a probe waits a moment for the quota, and leaves the lane to the next one`() async throws {
        let quota = QuotaGate(
            "p", provider: .fcm, perMinute: 1, clock: time.clock,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let gateway = ScriptedGateway(quota: quota)
        let key = LaneKey(app: app, environment: .production)
        let lanes = PushLanes(
            [key: gateway], provider: .fcm, clock: time.clock,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        lanes[key]?.gate.report(.misconfigured(reason: "SENDER"))
        time.advance(by: .seconds(30))
        quota.note(refused: [UUID(), UUID(), UUID()], pause: .seconds(600), answered: 0)
        #expect(await lanes.probe(key))
        #expect(gateway.sent.isEmpty)
        #expect(await lanes[key]?.gate.admit() == .probe)
    }

    @Test func `trouble is told of lanes that have some`() {
        let lanes = lanes([.production, .development])
        let production = LaneKey(app: app, environment: .production)
        #expect(lanes.trouble(of: production) == nil)
        lanes[production]?.gate.report(.misconfigured(reason: "BadTopic"))
        #expect(lanes.trouble(of: production) == .misconfigured(reason: "BadTopic"))
        #expect(!lanes.isShut(app))
    }
}

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

    @Test func `trouble is told of lanes that have some`() {
        let lanes = lanes([.production, .development])
        let production = LaneKey(app: app, environment: .production)
        #expect(lanes.trouble(of: production) == nil)
        lanes[production]?.gate.report(.misconfigured(reason: "BadTopic"))
        #expect(lanes.trouble(of: production) == .misconfigured(reason: "BadTopic"))
        #expect(!lanes.isShut(app))
    }
}

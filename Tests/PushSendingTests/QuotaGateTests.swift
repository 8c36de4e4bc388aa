import Foundation
import Logging
import Messaging
import PushProtocol
import TestSupport
import Testing
@testable import PushSending

@Suite(.timeLimit(.minutes(1))) struct QuotaGateTests {
    private let time = ManualTime()

    /// A hundred a second once it has grown.
    private func gate() -> QuotaGate {
        let gate = QuotaGate(
            "demo", provider: .fcm, perMinute: 6400, clock: time.clock,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        time.advance(by: .seconds(100))
        return gate
    }

    @Test func `who asks for more than there is gets what there is, and waits for the rest`() async throws {
        let gate = gate()
        #expect(await gate.admit(500, .interactive, until: gate.deadline) == .granted(100))
        async let next = gate.admit(500, .interactive, until: gate.deadline)
        try await eventually("it waits") { time.sleepers == 1 }
        time.advance(by: .milliseconds(130))
        #expect(await next == .granted(13))
    }

    @Test func `who would wait for too long is told to come later, at once`() async {
        let gate = gate()
        gate.note(refused: Set((0..<3).map { _ in UUID() }), pause: .seconds(600), answered: 0)
        #expect(await gate.admit(1, .interactive, until: gate.deadline) == .later(.seconds(600)))
        gate.note(refused: [], pause: .zero, answered: 1)
        #expect(await gate.admit(1, .interactive, until: gate.deadline) == .later(.seconds(600)))
    }

    @Test func `who is cancelled while waiting goes at once`() async throws {
        let gate = gate()
        #expect(await gate.admit(100, .interactive, until: gate.deadline) == .granted(100))
        let waiting = Task { await gate.admit(1, .interactive, until: gate.deadline) }
        try await eventually("it waits") { time.sleepers == 1 }
        waiting.cancel()
        #expect(await waiting.value == .later(.zero))
    }

    @Test func `refusals of too few devices change nothing`() async {
        let gate = gate()
        gate.note(refused: [UUID(), UUID()], pause: .seconds(60), answered: 0)
        #expect(await gate.admit(1, .bulk, until: gate.deadline) == .granted(1))
    }

    @Test func `a quota that is set anew holds at once`() async {
        let gate = gate()
        gate.allow(perMinute: 640)
        #expect(await gate.admit(500, .interactive, until: gate.deadline) == .granted(10))
        time.advance(by: .seconds(10))
        gate.allow(perMinute: 64_000)
        #expect(await gate.admit(5, .interactive, until: gate.deadline) == .granted(5))
    }

    @Test func `a probe does not wait until the quota is back, as everybody waits for the probe`() async throws {
        let quota = gate()
        let gateway = ScriptedGateway(quota: quota) { _, _ in .halted(reason: "PERMISSION_DENIED") }
        let app = AppID(rawValue: "demo")!
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let lanes = PushLanes(
            [LaneKey(app: app, environment: .production): gateway], provider: .fcm, clock: time.clock, logger: logger)
        let handler = PushStageHandler(provider: .fcm, lanes: lanes, clock: time.clock, logger: logger)
        @Sendable func send() async throws -> Disposition? {
            let push = Push.sample(provider: .fcm)
            let inbound = Inbound(
                queue: .senderPushes(.fcm, .interactive, app), exchange: "pushes", routingKey: "fcm.interactive.demo",
                body: [], attempt: 1, firstSeen: .sample)
            return try await handler.handle([Delivery(inbound: inbound, message: push)]).first?.disposition
        }
        _ = try await send()
        gateway.answer { _, _ in .settled(.accepted(id: nil)) }
        quota.note(refused: Set((0..<3).map { _ in UUID() }), pause: .seconds(100), answered: 0)
        time.advance(by: .seconds(30))
        guard case .postpone(.seconds(30), _) = try await send() else {
            Issue.record("the probe was not left for later")
            return
        }
        #expect(gateway.sent.count == 1 && time.sleepers == 0)
        time.advance(by: .seconds(90))
        #expect(try await send() == .done)
        #expect(gateway.sent.count == 2)
    }
}

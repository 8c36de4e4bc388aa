import Foundation
import Logging
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
}

import Foundation
import Logging
import Messaging
import Providers
import PushProtocol
import Testing
import TestSupport

@testable import PushSending

@Suite(.timeLimit(.minutes(1))) struct QuotaLimiterTests {
    private let time = ManualTime()

    /// A quota of 100 a second, after its ramp.
    private func limiter() -> QuotaLimiter {
        let limiter = QuotaLimiter(
            "demo", provider: .fcm, perMinute: 6400, clock: time.clock,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        time.advance(by: .seconds(100))
        return limiter
    }

    @Test func `given a request above the quota, then a part is granted and the rest waits`() async throws {
        let limiter = limiter()
        #expect(await limiter.admit(500, .interactive, until: limiter.deadline) == .granted(100))
        async let next = limiter.admit(500, .interactive, until: limiter.deadline)
        try await eventually("it waits") { time.sleepers == 1 }
        time.advance(by: .milliseconds(130))
        #expect(await next == .granted(13))
    }

    @Test func `given a wait beyond the deadline, then the caller is told at once to retry later`() async {
        let limiter = limiter()
        limiter.record(throttled: Set((0..<3).map { _ in UUID() }), pause: .seconds(600), answered: 0)
        #expect(await limiter.admit(1, .interactive, until: limiter.deadline) == .later(.seconds(600)))
        limiter.record(throttled: [], pause: .zero, answered: 1)
        #expect(await limiter.admit(1, .interactive, until: limiter.deadline) == .later(.seconds(600)))
    }

    @Test func `a cancelled wait ends at once`() async throws {
        let limiter = limiter()
        #expect(await limiter.admit(100, .interactive, until: limiter.deadline) == .granted(100))
        let waiting = Task { await limiter.admit(1, .interactive, until: limiter.deadline) }
        try await eventually("it waits") { time.sleepers == 1 }
        waiting.cancel()
        #expect(await waiting.value == .later(.zero))
    }

    @Test func `few throttled devices do not pause the quota`() async {
        let limiter = limiter()
        limiter.record(throttled: [UUID(), UUID()], pause: .seconds(60), answered: 0)
        #expect(await limiter.admit(1, .bulk, until: limiter.deadline) == .granted(1))
    }

    @Test func `a changed quota takes effect at once`() async {
        let limiter = limiter()
        limiter.setLimit(perMinute: 640)
        #expect(await limiter.admit(500, .interactive, until: limiter.deadline) == .granted(10))
        time.advance(by: .seconds(10))
        limiter.setLimit(perMinute: 64_000)
        #expect(await limiter.admit(5, .interactive, until: limiter.deadline) == .granted(5))
    }

    @Test func `a probe does not wait for an exhausted quota`() async throws {
        let quota = limiter()
        let gateway = ScriptedGateway(quota: quota) { _, _ in .halted(reason: "PERMISSION_DENIED") }
        let app = AppID(rawValue: "demo")!
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let routes = ProviderRoutes(
            [ProviderRoute(app: app, environment: .production): gateway], provider: .fcm, clock: time.clock,
            logger: logger)
        let handler = PushStageHandler(provider: .fcm, routes: routes, clock: time.clock, logger: logger)
        @Sendable func send() async throws -> Disposition? {
            let push = Push.sample(provider: .fcm)
            let inbound = Inbound(
                queue: .senderPushes(.fcm, .interactive, app), exchange: "pushes", routingKey: "fcm.interactive.demo",
                body: [], attempt: 1, firstSeen: .sample)
            return try await handler.handle([Delivery(inbound: inbound, message: push)]).first?.disposition
        }
        _ = try await send()
        gateway.answer { _, _ in .settled(.accepted(id: nil)) }
        quota.record(throttled: Set((0..<3).map { _ in UUID() }), pause: .seconds(100), answered: 0)
        time.advance(by: .seconds(30))
        guard case .postpone(.seconds(30), _) = try await send() else {
            Issue.record("the probe was not postponed")
            return
        }
        #expect(gateway.sent.count == 1 && time.sleepers == 0)
        time.advance(by: .seconds(90))
        #expect(try await send() == .done)
        #expect(gateway.sent.count == 2)
    }
}

import FoundationEssentials
import Logging
import Messaging
import Providers
import PushProtocol
import Testing
import TestSupport

@testable import PushSending

/// A paused process is not counted among those that share a quota, so it ramps up after its pause.
@Suite(.timeLimit(.minutes(2))) struct QuotaRampTests {
    private let time = ManualTime()
    private let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    private let allRoutes = ["one", "two"].map { ProviderRoute(app: AppID(rawValue: $0)!, environment: .production) }

    /// Two routes with a quota of 1000 a second; the routes of `paused` may probe now.
    private func routes(paused: [ProviderRoute]) -> (ProviderRoutes, QuotaLimiter) {
        let quota = QuotaLimiter("project", provider: .fcm, perMinute: 64_000, clock: time.clock, logger: logger)
        let gateways = Dictionary(
            uniqueKeysWithValues: allRoutes.map { ($0, ScriptedGateway(quota: quota) as any PushGateway) })
        let routes = ProviderRoutes(gateways, provider: .fcm, clock: time.clock, logger: logger)
        time.advance(by: .seconds(120))
        for route in paused { routes[route]?.breaker.record(.misconfigured(reason: "IAM")) }
        for route in paused { routes.probeAtOnce(route) }
        return (routes, quota)
    }

    /// The messages of one second at the current rate.
    private func grant(_ quota: QuotaLimiter) async -> QuotaLimiter.QuotaPermit {
        await quota.admit(1000, .interactive, until: time.clock.uptime())
    }

    @Test func `given all routes of a quota paused, when one probes, then the rate restarts at a twentieth`() async {
        let (routes, quota) = routes(paused: allRoutes)
        for route in allRoutes { _ = await routes.probe(route) }
        // Two messages were used by probes.
        #expect(await grant(quota) == .granted(48))
    }

    @Test func `given another open route, then the rate is kept`() async {
        let (routes, quota) = routes(paused: [allRoutes[0]])
        _ = await routes.probe(allRoutes[0])
        #expect(await grant(quota) == .granted(999))
    }

    @Test func `given a push as probe, then the rate restarts before other pushes`() async throws {
        let (routes, quota) = routes(paused: allRoutes)
        let handler = PushStageHandler(provider: .fcm, routes: routes, clock: time.clock, logger: logger)
        let push = Push.sample(provider: .fcm, app: "one")
        let inbound = Inbound(
            queue: .senderPushes(.fcm, .interactive, push.app), exchange: "pushes", routingKey: "k",
            body: try push.wireBody(), attempt: 1, firstSeen: .sample)
        let verdicts = try await handler.handle([Delivery(inbound: inbound, message: push)])
        #expect(verdicts.count == 1 && routes.openCause(of: allRoutes[0]) == nil)
        #expect(await grant(quota) == .granted(49))
    }
}

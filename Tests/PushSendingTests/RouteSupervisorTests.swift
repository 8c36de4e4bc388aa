import FoundationEssentials
import Logging
import Messaging
import Providers
import PushProtocol
import Testing
import TestSupport

@testable import PushSending

@Suite(.timeLimit(.minutes(2))) struct RouteSupervisorTests {
    private let app = AppID(rawValue: "demo")!
    private let time = ManualTime()
    private let gateway = ScriptedGateway { _, _ in .halted(reason: "BadTopic") }

    private func routes(_ environments: [ProviderEnvironment]) -> ProviderRoutes {
        ProviderRoutes(
            Dictionary(uniqueKeysWithValues: environments.map { (ProviderRoute(app: app, environment: $0), gateway) }),
            provider: .apns, clock: time.clock, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    private func supervised(
        _ routes: ProviderRoutes, _ body: (QueueActionLog) async throws -> Void
    ) async throws {
        let log = QueueActionLog()
        let supervisor = RouteSupervisor(
            routes: routes, provider: .apns, clock: time.clock,
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

    @Test func `given a paused route, then both queues of its app pause, and resume after the pause`() async throws {
        let routes = routes([.production])
        try await supervised(routes) { log in
            let route = ProviderRoute(app: app, environment: .production)
            routes[route]?.breaker.record(.misconfigured(reason: "BadTopic"))
            try await eventually(within: .seconds(60)) { log.lines == names("pause") && time.sleepers == 1 }
            time.advance(by: .seconds(30))
            try await eventually(within: .seconds(60)) { log.lines == names("pause") + names("resume") }
        }
    }

    @Test func `given another working environment, then the app's queues are not paused`() async throws {
        let routes = routes([.production, .development])
        try await supervised(routes) { log in
            for environment in [ProviderEnvironment.development, .production] {
                let route = ProviderRoute(app: app, environment: environment)
                routes[route]?.breaker.record(.misconfigured(reason: "BadTopic"))
            }
            try await eventually(within: .seconds(60)) { log.lines == names("pause") }
        }
    }

    /// Advances the time once a task sleeps.
    private func wait(_ duration: Duration) async throws {
        try await eventually(within: .seconds(60)) { time.sleepers == 1 }
        time.advance(by: duration)
    }

    @Test func `given a paused route without pushes, when the pause is over, then it is probed and resumes`()
        async throws
    {
        let routes = routes([.production, .development])
        let idle = ProviderRoute(app: app, environment: .development)
        gateway.answer { _, _ in .settled(.rejected(reason: "BadDeviceToken", suspectToken: true)) }
        try await supervised(routes) { log in
            routes[idle]?.breaker.record(.misconfigured(reason: "BadTopic"))
            try await wait(.seconds(30))
            try await wait(.seconds(4))
            #expect(gateway.sent.isEmpty)
            time.advance(by: .seconds(1))
            try await eventually(within: .seconds(60)) { routes.openCause(of: idle) == nil }
            #expect(gateway.sent.map(\.secret) == [String(repeating: "0", count: 64)])
            #expect(log.lines.isEmpty)
        }
    }

    @Test func `given a failed probe, then the next one follows after twice the pause`() async throws {
        let routes = routes([.production])
        let route = ProviderRoute(app: app, environment: .production)
        try await supervised(routes) { log in
            routes[route]?.breaker.record(.misconfigured(reason: "BadTopic"))
            for (probes, pause) in [30, 60, 120].enumerated() {
                try await wait(.seconds(pause))
                try await wait(RouteSupervisor.probeGracePeriod)
                try await eventually(within: .seconds(60)) { gateway.sent.count == probes + 1 }
            }
            #expect(routes.openCause(of: route) == .misconfigured(reason: "BadTopic"))
        }
    }

    @Test func `given an inconclusive probe, then another one follows`() async throws {
        let routes = routes([.production])
        let route = ProviderRoute(app: app, environment: .production)
        gateway.answer { _, call in call == 1 ? .deferred(reason: "queue-full") : .settled(.accepted(id: nil)) }
        try await supervised(routes) { log in
            routes[route]?.breaker.record(.misconfigured(reason: "BadTopic"))
            try await wait(.seconds(30))
            try await wait(RouteSupervisor.probeGracePeriod)
            try await eventually(within: .seconds(60)) { gateway.sent.count == 1 }
            #expect(routes.openCause(of: route) != nil)
            try await wait(.seconds(30))
            try await eventually(within: .seconds(60)) { routes.openCause(of: route) == nil }
        }
    }

    @Test func `given a changed credential, then the route is probed before the end of its pause`() async throws {
        let routes = routes([.production])
        let route = ProviderRoute(app: app, environment: .production)
        gateway.answer { _, _ in .settled(.accepted(id: nil)) }
        try await supervised(routes) { log in
            routes[route]?.breaker.record(.misconfigured(reason: "BadTopic"))
            try await eventually(within: .seconds(60)) { log.lines == names("pause") && time.sleepers == 1 }
            routes.probeAtOnce(route)
            try await eventually(within: .seconds(60)) {
                log.lines == names("pause") + names("resume") && time.sleepers == 2
            }
            time.advance(by: RouteSupervisor.probeGracePeriod)
            try await eventually(within: .seconds(60)) { routes.openCause(of: route) == nil }
            #expect(gateway.sent.count == 1)
        }
    }

    @Test func `no probe is sent during another probe, a pause or a spike`() async throws {
        let routes = routes([.production, .development])
        let route = ProviderRoute(app: app, environment: .production)
        let breaker = try #require(routes[route]?.breaker)
        #expect(await !routes.probe(route))
        breaker.record(.misconfigured(reason: "BadTopic"))
        #expect(await !routes.probe(route))
        time.advance(by: .seconds(30))
        #expect(await breaker.admit() == .probe)
        #expect(await !routes.probe(route))
        breaker.recordProbe(.answered)

        let suspects = (0..<30).map { TargetRequest(of: 0, to: .sample(token: "\($0)")) }
        var attempt = SendAttempt(
            requests: suspects,
            results: suspects.map { _ in .settled(.rejected(reason: "BadDeviceToken", suspectToken: true)) })
        breaker.detectSpike(&attempt, isProbe: false)
        breaker.record(attempt.observation)
        time.advance(by: .seconds(30))
        #expect(await !routes.probe(route))
        #expect(gateway.sent.isEmpty)
    }

    @Test func `given an exhausted quota, then the probe is inconclusive`() async throws {
        let quota = QuotaLimiter(
            "p", provider: .fcm, perMinute: 1, clock: time.clock,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let gateway = ScriptedGateway(quota: quota)
        let route = ProviderRoute(app: app, environment: .production)
        let routes = ProviderRoutes(
            [route: gateway], provider: .fcm, clock: time.clock,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        routes[route]?.breaker.record(.misconfigured(reason: "SENDER"))
        time.advance(by: .seconds(30))
        quota.record(throttled: [UUID(), UUID(), UUID()], pause: .seconds(600), answered: 0)
        #expect(await routes.probe(route))
        #expect(gateway.sent.isEmpty)
        #expect(await routes[route]?.breaker.admit() == .probe)
    }

    @Test func `only a paused route has an open cause`() {
        let routes = routes([.production, .development])
        let production = ProviderRoute(app: app, environment: .production)
        #expect(routes.openCause(of: production) == nil)
        routes[production]?.breaker.record(.misconfigured(reason: "BadTopic"))
        #expect(routes.openCause(of: production) == .misconfigured(reason: "BadTopic"))
        #expect(!routes.isBlocked(app))
    }
}

import HTTP2
import HTTP2Server
import JWTKit
import Logging
import PushProtocol
import ServiceKit
import Testing
import TestSupport

@testable import APNsSender

/// The service with a real broker and a test provider over TLS and HTTP/2.
@Suite(
    .timeLimit(.minutes(2)), .enabled(if: TestBroker.isAvailable, "needs a broker: deploy/local/test starts one"))
struct SenderWireTests {
    private let app = AppID(rawValue: "demo")!

    /// Runs the sender for one app with a key and one without credentials.
    private func run(
        _ provider: FakeProvider, sandbox: FakeProvider? = nil, url: String? = nil,
        _ body: @Sendable (TestBus, ServiceContext) async throws -> Void
    ) async throws {
        let catalogs = try AppCatalogs()
        // Keeps the files that the sender watches.
        defer { withExtendedLifetime(catalogs) {} }
        _ = try catalogs.key("bare: {}")
        try await TestBus.run(apps: [app, AppID(rawValue: "bare")!]) { bus in
            let settings = try Settings.load(
                keys: APNsSenderApp.keys,
                environment: [
                    "AMQP_URL": bus.url, "HELIOGRAPH_APPS": catalogs.file, "APNS_URL": url ?? provider.url,
                    "APNS_SANDBOX_URL": sandbox?.url ?? provider.url,
                    "PROVIDER_CA_FILE": try TestCertificates.shared().authorityFile,
                ])
            let context = ServiceContext(
                name: "apns-sender", settings: settings, logger: .silent, readiness: Readiness())
            try await withServices(try await APNsSenderApp.build(context).services) { try await body(bus, context) }
        }
    }

    private func targets(_ count: Int) -> [Push.Target] {
        (0..<count).map { .sample(token: String($0 + 0x1000_0000, radix: 16)) }
    }

    @Test func `a push to 500 targets is sent once each with one provider token, and produces 500 outcomes`()
        async throws
    {
        let provider = try await FakeProvider.start { _ in [.respond(status: 200)] }
        try await run(provider) { bus, _ in
            let push = Push.sample(targets: targets(500))
            try await bus.publish(push)
            let outcomes = try await bus.outcomes(500)
            #expect(outcomes.allSatisfy { $0.answer.disposition == .accepted })
            #expect(Set(outcomes.map(\.device)) == Set(push.targets.map(\.device)))
            let requests = provider.requests
            #expect(
                requests.map(\.path).sorted() == push.targets.map { "/3/device/\($0.token.secret)" }.sorted())
            #expect(Set(requests.map { $0.headers["authorization"] }).count == 1)
            #expect(Set(requests.map { $0.headers["apns-id"] }).count == 500)
        }
        await provider.stop()
    }

    @Test func `secret and unique headers are never indexed`() async throws {
        let provider = try await FakeProvider.start { _ in [.respond(status: 200)] }
        try await run(provider) { bus, _ in
            try await bus.publish(.sample(expiresAt: .now + .seconds(60)))
            _ = try await bus.outcomes(1)
            let request = try #require(provider.requests.first)
            #expect(request.method == "POST")
            #expect(request.pathNeverIndexed)
            for name in ["authorization", "apns-id", "apns-collapse-id", "apns-expiration"] {
                #expect(request.headers.first { $0.name == name }?.neverIndexed == true, "\(name)")
            }
            #expect(request.headers["apns-topic"] == "com.example.app")
            #expect(request.headers["authorization"]?.hasPrefix("bearer ") == true)
            #expect(String(decoding: request.body, as: UTF8.self) == #"{"aps":{"alert":{"body":"Yo","title":"Hi"}}}"#)
        }
        await provider.stop()
    }

    @Test func `each environment has its own host`() async throws {
        let production = try await FakeProvider.start { _ in [.respond(status: 200)] }
        let sandbox = try await FakeProvider.start { _ in [.respond(status: 200)] }
        try await run(production, sandbox: sandbox) { bus, _ in
            try await bus.publish(.sample(environment: .development))
            try await bus.publish(.sample(lane: .bulk))
            _ = try await bus.outcomes(2)
            #expect(production.requests.count == 1)
            #expect(sandbox.requests.count == 1)
        }
        await production.stop()
        await sandbox.stop()
    }

    @Test func `one target's rejection and another's throttling do not delay the third`() async throws {
        let since = Timestamp(milliseconds: 1_767_225_000_000)
        let provider = try await FakeProvider.start { request in
            switch request.path.last {
            case "1":
                let body = #"{"reason":"Unregistered","timestamp":\#(since.milliseconds)}"#
                return [.respond(status: 410, body: Array(body.utf8))]
            case "2": return [.respond(status: 429, body: Array(#"{"reason":"TooManyRequests"}"#.utf8))]
            default: return [.respond(status: 200)]
            }
        }
        try await run(provider) { bus, _ in
            let push = Push.sample(targets: targets(3))
            try await bus.publish(push)
            let outcomes = try await bus.outcomes(2)
            let byDevice = Dictionary(outcomes.map { ($0.device, $0.answer) }) { first, _ in first }
            #expect(byDevice[push.targets[0].device]?.disposition == .accepted)
            #expect(byDevice[push.targets[1].device] == .unregistered(since: since, reason: "Unregistered"))
            try await eventually("the throttled target waits", within: .seconds(60)) {
                try await bus.status(RetryLevel.minutes2.queueName).messages == 1
            }
        }
        await provider.stop()
    }

    @Test func `an app without credentials is skipped`() async throws {
        let provider = try await FakeProvider.start { _ in [.respond(status: 200)] }
        try await run(provider) { bus, _ in
            try await bus.publish(.sample(app: "bare"))
            #expect(try await bus.outcomes(1).map(\.answer) == [.skipped(reason: "unconfigured")])
            #expect(provider.requests.isEmpty)
        }
        await provider.stop()
    }

    @Test func `given a rejected key, then the route pauses, keeps its queue, and readiness is degraded only`()
        async throws
    {
        let provider = try await FakeProvider.start { _ in
            [.respond(status: 403, body: Array(#"{"reason":"InvalidProviderToken"}"#.utf8))]
        }
        try await run(provider) { bus, context in
            let queue = WorkQueue.senderPushes(.apns, .interactive, app).name
            for environment in ProviderEnvironment.allCases { try await bus.publish(.sample(environment: environment)) }
            try await eventually("the pause", within: .seconds(60)) {
                try await bus.status(queue).consumers == 0 && provider.requests.count == 2
            }
            for _ in 0..<20 { try await bus.publish(.sample()) }
            #expect(try await bus.status(queue).messages == 20)
            #expect(provider.requests.count == 2)
            #expect(try await bus.status(WorkQueue.rulesOutcomes.name).messages == 0)
            let states = context.readiness.report.conditions.filter { $0.name.hasPrefix("lane-") }.map(\.state)
            #expect(states == [.degraded("InvalidProviderToken"), .degraded("InvalidProviderToken")])
            try await eventually("readiness", within: .seconds(60)) { context.readiness.report.isReady }
        }
        await provider.stop()
    }

    @Test func `given an unreachable provider, then pushes are retried and none is lost`() async throws {
        let provider = try await FakeProvider.start { _ in [.respond(status: 200)] }
        try await run(provider, url: "https://127.0.0.1:1") { bus, _ in
            try await bus.publish(.sample())
            try await eventually("the push waits", within: .seconds(60)) {
                try await bus.status(RetryLevel.seconds5.queueName).messages == 1
            }
            #expect(try await bus.status(WorkQueue.rulesOutcomes.name).messages == 0)
        }
        await provider.stop()
    }

    private func build(_ catalog: String, logger: Logger) async throws -> ServiceContext {
        let folder = try TemporaryFolder()
        try folder.write("bad.p8", "no key")
        try folder.write("good.p8", ES256PrivateKey().pemRepresentation)
        let settings = try Settings.load(
            keys: APNsSenderApp.keys,
            environment: [
                "AMQP_URL": "amqp://nobody:x@127.0.0.1:1/x", "HELIOGRAPH_APPS": try folder.write("apps.yaml", catalog),
            ])
        let context = ServiceContext(name: "apns-sender", settings: settings, logger: logger, readiness: Readiness())
        _ = try await APNsSenderApp.build(context)
        return context
    }

    @Test func `given an unusable key, then only its app's routes pause, and the log names app and file`() async throws
    {
        let log = CapturingLogger()
        let context = try await build(
            """
            apps:
              demo: { apns: { topic: a.b, key-id: ABC123DEFG, team-id: DEF123GHIJ, key-file: bad.p8 } }
              fine: { apns: { topic: a.c, key-id: ABC123DEFH, team-id: DEF123GHIJ, key-file: good.p8 } }
            """, logger: log.logger)
        let lanes = context.readiness.report.conditions.filter { $0.name.hasPrefix("lane-") }
        for lane in lanes where lane.name.contains("fine") { #expect(lane.state == .holds) }
        let shut = lanes.filter { $0.name.contains("demo") }
        #expect(!shut.isEmpty)
        for lane in shut {
            guard case .degraded(let reason) = lane.state else {
                Issue.record("\(lane)")
                continue
            }
            #expect(reason.contains("bad.p8"))
        }
        let errors = log.lines.filter { $0.level == .error }
        #expect(errors.count == shut.count)
        #expect(errors.allSatisfy { $0.metadata["app"] == "demo" && "\($0.metadata)".contains("bad.p8") })
    }

    @Test func `given a malformed app catalog, then the start fails`() async throws {
        await #expect(throws: ConfigurationError.self) {
            _ = try await build("apps: { demo: { apns: { topic: a.b, keyy: x } } }", logger: CapturingLogger().logger)
        }
    }
}

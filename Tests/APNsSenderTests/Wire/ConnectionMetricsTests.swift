import CoreMetrics
import HTTP2
import HTTP2Server
import MetricsTestKit
import PushProtocol
import PushSending
import Testing
import TestSupport

@testable import APNsSender

/// The connection metrics.
@Suite(.timeLimit(.minutes(2))) struct ConnectionMetricsTests {
    private let catalogs: AppCatalogs
    private let metrics = TestMetrics()
    /// Each element starts the next recording.
    private let ticks = AsyncStream.makeStream(of: Void.self)

    init() throws { catalogs = try AppCatalogs() }

    /// Runs `body` while the connections of `sender` are measured.
    private func watching(_ sender: SenderUnderTest, _ body: () async throws -> Void) async throws {
        let clock = SenderClock(
            now: { .now }, uptime: { .zero },
            sleep: { [stream = ticks.stream] _ in
                for await _ in stream { return }
                throw CancellationError()
            })
        try await withMetricsFactory(metrics) {
            let clients = ProviderClients({ sender.gateways.clients }, provider: .apns, clock: clock)
            let running = Task { try await clients.run() }
            try await body()
            ticks.continuation.finish()
            try await running.value
        }
    }

    private func shows(
        _ figures: [String: Double], apps: String, in environment: ProviderEnvironment = .production
    ) async throws {
        ticks.continuation.yield()
        let labels = [("provider", "apns"), ("environment", environment.rawValue), ("apps", apps)]
        try await eventually("\(figures)", within: .seconds(30)) {
            figures.allSatisfy { name, value in
                (try? metrics.expectGauge("heliograph_push_\(name)", labels).lastValue) == value
            }
        }
    }

    private func counted(_ name: String, _ result: String? = nil, apps: String) -> Int64 {
        metrics.counterTotal(
            label: "heliograph_push_\(name)_total",
            dimensions: [("provider", "apns"), ("environment", "production"), ("apps", apps)]
                + (result.map { [("result", $0)] } ?? []))
    }

    @Test func `connections, open streams and waiting requests are labelled with the apps that share a key`()
        async throws
    {
        let gate = Gate()
        let apns = try await ScriptedAPNs.start(settings: HTTP2ServerSettings(maximumConcurrentStreams: 1)) { _, _ in
            await gate.pass()
            return [.respond(status: 200)]
        }
        let sender = try await apns.sender(
            try catalogs.load(
                "same: { apns: { topic: com.example.same, key-id: ABC123DEFG, team-id: DEF123GHIJ, key-file: key.p8 } }",
                "demo: { apns: { topic: com.example.app, key-id: ABC123DEFG, team-id: DEF123GHIJ, key-file: key.p8 } }"),
            connections: 1)
        let apps = "demo,same"
        try await watching(sender) {
            let targets = (0..<20).map { Push.Target.sample(token: String($0 + 0x1000_0000, radix: 16)) }
            async let result = sender.send(.sample(targets: targets))
            try await eventually("the others wait", within: .seconds(30)) {
                sender.clients.contains { $0.statistics.waiting == 19 && $0.statistics.openStreams == 1 }
            }
            try await shows(["connections": 1, "streams_open": 1, "requests_waiting": 19], apps: apps)
            try await shows(["connections": 0, "requests_waiting": 0], apps: apps, in: .development)
            gate.open()
            #expect(try await result.answers.count == 20)
            apns.server.goAwayAll(HTTP2ServerGoAway(lastStream: .received, debugText: ""))
            try await eventually("the close", within: .seconds(30)) {
                sender.clients.contains { $0.statistics.connectionsClosed == 1 }
            }
            try await shows(["connections": 0, "streams_open": 0, "requests_waiting": 0], apps: apps)
        }
        #expect(counted("connects", "ready", apps: apps) == 1)
        #expect(counted("connects", "failed", apps: apps) == 0)
        #expect(counted("goaways", apps: apps) == 1)
        await apns.server.shutdown()
    }

    @Test func `counters continue when a new certificate creates another client`() async throws {
        let certificates = try PushCertificates()
        try certificates.issue("mine", topics: ["com.example.app"])
        try certificates.issue("next", topics: ["com.example.app"], days: 90)
        let apns = try await ScriptedAPNs.start(
            clientCertificates: .required(caFile: try TestCertificates.shared().authorityFile)
        ) { _, _ in [.respond(status: 200)] }
        let sender = try await apns.sender(
            try catalogs.certificate(certificates.path("mine.pem"), key: certificates.path("mine.key")))
        try await watching(sender) {
            _ = try await sender.send(.sample())
            try await shows(["connections": 1], apps: "demo")
            try certificates.replace("mine", with: "next")
            await sender.watch.reload()
            try await shows(["connections": 0], apps: "demo")
            _ = try await sender.send(.sample())
            try await shows(["connections": 1], apps: "demo")
        }
        #expect(counted("connects", "ready", apps: "demo") == 2)
        await apns.server.shutdown()
    }
}

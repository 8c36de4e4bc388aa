import CoreMetrics
import Foundation
import HTTP2
import HTTP2Server
import Logging
import Messaging
import MetricsTestKit
import Providers
import PushProtocol
import PushSending
import ServiceKit
import ServiceLifecycle
import Synchronization
import Testing
import TestSupport

@testable import FCMSender

/// The project's quota (ProviderFacts.md §B.5), and the effect of a 429 on other requests.
@Suite(.timeLimit(.minutes(2))) struct QuotaWireTests {
    @Test func `a project over its quota pauses as long as FCM says, then resumes, and no attempt counts`()
        async throws
    {
        try await SimulatedGoogle.run { google in
            let sender = try await SenderUnderTest(google)
            try await google.script([
                "provider": "fcm", "error_code": "QUOTA_EXCEEDED", "retry_after": 120, "count": 5,
            ])
            let refused = try await sender.send(
                .sample(provider: .fcm, targets: (0..<5).map { .sample(token: "r\($0)") }))
            #expect(refused.answers.isEmpty && refused.wait == .seconds(120))
            let before = sender.time.uptime
            let next = try await sender.send(.sample(provider: .fcm, targets: [.sample(token: "t")]))
            #expect(next.answers.map(\.disposition) == [.accepted])
            #expect(sender.time.uptime - before >= .seconds(120))
            #expect(sender.trouble == nil)
            await sender.stop()
        }
    }

    @Test func `a pause longer than a push can be held postpones it, without counting an attempt`() async throws {
        try await SimulatedGoogle.run { google in
            let sender = try await SenderUnderTest(google)
            try await google.script([
                "provider": "fcm", "error_code": "QUOTA_EXCEEDED", "retry_after": 600, "count": 3,
            ])
            _ = try await sender.send(.sample(provider: .fcm, targets: (0..<3).map { .sample(token: "r\($0)") }))
            let held = try await sender.send(.sample(provider: .fcm, targets: [.sample(token: "t")]))
            guard case .postpone(.seconds(120), _) = held.disposition else {
                Issue.record("\(held.disposition)")
                return
            }
            #expect(held.answers.isEmpty)
            #expect(try await google.sends().count == 3)
            await sender.stop()
        }
    }

    @Test func `two accounts of one project share its quota, and the metric has the project's name`() async throws {
        let folder = try CatalogFolder(
            apps: """
                  one: { fcm: { service-account-file: one.json, messages-per-minute: 1200000 } }
                  two: { fcm: { service-account-file: two.json, messages-per-minute: 900000 } }
                  else: { fcm: { service-account-file: else.json } }

                """)
        for name in ["one", "two"] { try folder.writeAccount(name: name, to: "\(name).json") }
        try folder.writeAccount(project: "other-project", name: "else", to: "else.json")
        let metrics = TestMetrics()
        try await SimulatedGoogle.run(folder) { google in
            let sender = try await withMetricsFactory(metrics) { try await SenderUnderTest(google) }
            #expect(sender.quotas.all.map { Set($0.apps.map(\.rawValue)) }.contains(["one", "two"]))
            for share in sender.quotas.all { share.quota.share(among: 1) }
            let labels = metrics.recorders.filter { $0.label == "heliograph_push_quota_rate" }.map(\.dimensions)
            #expect(
                Set(labels.flatMap { $0.filter { $0.0 == "project" }.map(\.1) }) == ["demo-project", "other-project"])
            // A twentieth of the lower of the two configured quotas.
            let rates = metrics.recorders.filter { $0.label == "heliograph_push_quota_rate" }.compactMap(\.lastValue)
            #expect(rates.map { ($0 * 64 * 20).rounded() }.sorted() == [600_000, 900_000])

            try await google.script(["provider": "fcm", "error_code": "QUOTA_EXCEEDED", "retry_after": 120, "count": 5])
            let targets = (0..<5).map { Push.Target.sample(token: "r\($0)") }
            #expect(try await sender.send(.sample(provider: .fcm, app: "one", targets: targets)).wait == .seconds(120))
            let before = sender.time.uptime
            let elsewhere = try await sender.send(.sample(provider: .fcm, app: "else"))
            #expect(elsewhere.answers.map(\.disposition) == [.accepted])
            #expect(sender.time.uptime - before < .seconds(10))
            let neighbour = try await sender.send(.sample(provider: .fcm, app: "two"))
            #expect(neighbour.answers.map(\.disposition) == [.accepted])
            #expect(sender.time.uptime - before >= .seconds(110))
            await sender.stop()
        }
    }

    @Test func `an app that is added to an account shares its connections, and its quota counts`() async throws {
        let folder = try CatalogFolder(
            apps: """
                  one: { fcm: { service-account-file: account.json, messages-per-minute: 900000 } }

                """)
        try folder.writeAccount()
        try await SimulatedGoogle.run(folder) { google in
            let sender = try await SenderUnderTest(google)
            var gateways = sender.gateways
            let account = FCMAppConfiguration(serviceAccountFile: folder.accountFile, messagesPerMinute: 600_000)
            let added = try #require(AppID(rawValue: "added"))
            try await gateways.add(AppConfiguration(id: added, fcm: account))
            #expect(gateways.accounts.map { $0.apps.map(\.rawValue) } == [["one", "added"]])
            #expect(gateways.quotas.all.map { $0.apps.map(\.rawValue) } == [["one", "added"]])
            #expect(gateways.clients.count == 1 && gateways.unusableRoutes.isEmpty)
            let route = ProviderRoute(app: added, environment: .production)
            sender.routes.add(gateways.byRoute.filter { $0.key == route })
            #expect(sender.routes.all.count == 2 && sender.routes.openCause(of: route) == nil)
            await sender.stop()
        }
    }

    @Test func `a corrected account joins its project's quota`() async throws {
        let folder = try CatalogFolder(
            apps: """
                  one: { fcm: { service-account-file: one.json } }
                  two: { fcm: { service-account-file: two.json } }

                """)
        for name in ["one", "two"] { try folder.writeAccount(name: name, to: "\(name).json") }
        try await SimulatedGoogle.run(folder) { google in
            try google.folder.write(Array("{}".utf8), to: "two.json")
            let sender = try await SenderUnderTest(google)
            #expect(sender.quotas.all.map { $0.apps.map(\.rawValue) } == [["one"]])
            #expect(try await sender.send(.sample(provider: .fcm, app: "two")).wait != nil)
            try google.folder.writeAccount(name: "two", to: "two.json")
            await sender.watch.reload()
            let result = try await sender.send(.sample(provider: .fcm, app: "two"))
            #expect(result.answers.map(\.disposition) == [.accepted])
            #expect(sender.quotas.all.map { $0.apps.map(\.rawValue) } == [["one", "two"]])
            await sender.stop()
        }
    }

    /// The arrival times of requests.
    private final class Arrivals: Sendable {
        private let moments = Mutex<[ContinuousClock.Instant]>([])

        func note() { moments.withLock { $0.append(.now) } }

        func count(in range: Range<ContinuousClock.Instant>) -> Int {
            moments.withLock { $0.count { range.contains($0) } }
        }
    }

    @Test(.enabled(if: TestBroker.isAvailable, "needs a broker: deploy/local/test starts one"))
    func `three senders together send no more than one`() async throws {
        // 937 a second after the ramp; about a tenth of that in the measured seconds.
        let quota = 60_000
        let arrivals = Arrivals()
        let provider = try await FakeProvider.start { request in
            guard request.path != "/token" else {
                return [.respond(status: 200, body: Array(#"{"access_token":"AT","expires_in":3599}"#.utf8))]
            }
            arrivals.note()
            return [.respond(status: 200, body: Array(#"{"name":"projects/demo-project/messages/1"}"#.utf8))]
        }
        let folder = try CatalogFolder()
        defer { withExtendedLifetime(folder) {} }
        try await TestBus.run(apps: [AppID(rawValue: "demo")!]) { bus in
            // More than the three senders prefetch, so each has pushes to send.
            for _ in 0..<1_200 {
                try await bus.publish(
                    .sample(provider: .fcm, lane: .bulk, targets: (0..<5).map { .sample(token: "t\($0)") }))
            }
            let settings = try Settings.load(
                keys: FCMSenderApp.keys,
                environment: [
                    "AMQP_URL": bus.url, "HELIOGRAPH_APPS": folder.catalogFile, "FCM_QUOTA": "\(quota)",
                    "FCM_URL": provider.url, "FCM_TOKEN_URL": "\(provider.url)/token",
                    "PROVIDER_CA_FILE": try TestCertificates.shared().authorityFile,
                ])
            let logger = Logger.silent
            let begin = ContinuousClock.now
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                var groups: [ServiceGroup] = []
                for number in 1...3 {
                    let context = ServiceContext(
                        name: "fcm-sender", instance: "\(number)", settings: settings, logger: logger,
                        readiness: Readiness())
                    let group = ServiceGroup(
                        services: try await FCMSenderApp.build(context).services, logger: logger)
                    groups.append(group)
                    tasks.addTask { try await group.run() }
                }
                // By then each sender has counted the others since the last one started.
                let (from, to) = (begin + .seconds(7), begin + .seconds(11))
                try await eventually("the seconds that are looked at are over", within: .seconds(30)) {
                    ContinuousClock.now >= to
                }
                let sent = Double(arrivals.count(in: from..<to))
                let allowed = Double(quota) / 64 * (11.0 / 60) * 4
                #expect(sent <= allowed * 1.15, "\(sent) were sent, \(allowed) are allowed")
                // The token bucket's own test covers precision; here three senders share two busy cores.
                #expect(sent >= allowed * 0.2, "\(sent) were sent of \(allowed)")
                for group in groups { await group.triggerGracefulShutdown() }
                try await tasks.waitForAll()
            }
        }
        await provider.stop()
    }
}

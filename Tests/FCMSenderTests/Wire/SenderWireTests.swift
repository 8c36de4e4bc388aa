import Foundation
import HTTP2
import HTTP2Server
import Logging
import PushProtocol
import PushSending
import ServiceKit
import Synchronization
import Testing
import TestSupport

@testable import FCMSender

/// The service with a real broker, FCM and a token endpoint over TLS and HTTP/2.
@Suite(
    .timeLimit(.minutes(2)), .enabled(if: TestBroker.isAvailable, "needs a broker: deploy/local/test starts one"))
struct SenderWireTests {
    private static let accessToken = HTTP2ServerStep.respond(
        status: 200, headers: [HTTP2Header(name: "content-type", value: "application/json")],
        body: Array(#"{"access_token":"AT","expires_in":3599,"token_type":"Bearer"}"#.utf8))
    private static let accepted = HTTP2ServerStep.respond(
        status: 200, body: Array(#"{"name":"projects/demo-project/messages/0:1%2"}"#.utf8))

    private func run(
        _ provider: FakeProvider, _ body: @Sendable (TestBus, ServiceContext) async throws -> Void
    ) async throws {
        let folder = try CatalogFolder()
        // Keeps the files that the sender watches.
        defer { withExtendedLifetime(folder) {} }
        try await TestBus.run(apps: [AppID(rawValue: "demo")!]) { bus in
            let settings = try Settings.load(
                keys: FCMSenderApp.keys,
                environment: [
                    "AMQP_URL": bus.url, "HELIOGRAPH_APPS": folder.catalogFile,
                    "FCM_URL": provider.url, "FCM_TOKEN_URL": "\(provider.url)/token",
                    "PROVIDER_CA_FILE": try TestCertificates.shared().authorityFile,
                ])
            let context = ServiceContext(
                name: "fcm-sender", settings: settings, logger: .silent, readiness: Readiness())
            try await withServices(try await FCMSenderApp.build(context).services) { try await body(bus, context) }
        }
    }

    private func targets(_ count: Int) -> [Push.Target] { (0..<count).map { .sample(token: "token-\($0)") } }

    @Test func `500 targets are 500 requests with one access token`() async throws {
        let provider = try await FakeProvider.start { request in
            [request.path == "/token" ? Self.accessToken : Self.accepted]
        }
        try await run(provider) { bus, _ in
            let push = Push.sample(provider: .fcm, targets: targets(500))
            try await bus.publish(push)
            let outcomes = try await bus.outcomes(500)
            #expect(Set(outcomes.map(\.answer)) == [.accepted(id: "0:1%2")])
            let calls = provider.requests.filter { $0.path == "/token" }
            #expect(calls.count == 1)
            #expect(calls.first?.headers["content-type"] == "application/x-www-form-urlencoded")
            let sends = provider.requests.filter { $0.path == "/v1/projects/demo-project/messages:send" }
            #expect(sends.count == 500)
            #expect(Set(sends.map { $0.headers["authorization"] }) == ["Bearer AT"])
            #expect(sends.first?.headers.first { $0.name == "authorization" }?.neverIndexed == true)
            let tokens = try sends.map {
                try WireCoding.decode(JSONValue.self, from: $0.body)[path: "message.token"]?.string
            }
            #expect(Set(tokens) == Set(push.targets.map(\.token.secret)))
        }
        await provider.stop()
    }

    @Test func `a 401 requests one new access token, and all pushes are sent`() async throws {
        let calls = Mutex(0)
        let provider = try await FakeProvider.start { request in
            guard request.path != "/token" else {
                let count = calls.withLock { calls in
                    calls += 1
                    return calls
                }
                let body = #"{"access_token":"AT\#(count)","expires_in":3599}"#
                return [.respond(status: 200, body: Array(body.utf8))]
            }
            guard request.headers["authorization"] == "Bearer AT2" else {
                let body = #"{"error":{"code":401,"status":"UNAUTHENTICATED","message":"no"}}"#
                return [.respond(status: 401, body: Array(body.utf8))]
            }
            return [Self.accepted]
        }
        try await run(provider) { bus, _ in
            try await bus.publish(.sample(provider: .fcm, targets: targets(50)))
            let outcomes = try await bus.outcomes(50)
            #expect(outcomes.allSatisfy { $0.answer.disposition == .accepted })
            #expect(calls.withLock { $0 } == 2)
        }
        await provider.stop()
    }

    @Test func `a gone registration is reported, and a rejected account pauses the route`() async throws {
        let isRefused = Mutex(false)
        let provider = try await FakeProvider.start { request in
            guard request.path != "/token" else { return [Self.accessToken] }
            let body =
                isRefused.withLock { $0 }
                ? #"{"error":{"code":403,"status":"PERMISSION_DENIED","message":"no"}}"#
                : """
                {"error":{"code":404,"status":"NOT_FOUND","message":"gone","details":[{"@type":\
                "type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode":"UNREGISTERED"}]}}
                """
            return [.respond(status: isRefused.withLock { $0 } ? 403 : 404, body: Array(body.utf8))]
        }
        try await run(provider) { bus, context in
            try await bus.publish(.sample(provider: .fcm))
            #expect(
                try await bus.outcomes(1).map(\.answer) == [.unregistered(since: nil, reason: "UNREGISTERED")])
            isRefused.withLock { $0 = true }
            try await bus.publish(.sample(provider: .fcm))
            let queue = WorkQueue.senderPushes(.fcm, .interactive, AppID(rawValue: "demo")!).name
            try await eventually("the pause", within: .seconds(60)) { try await bus.status(queue).consumers == 0 }
            #expect(context.readiness.report.conditions.contains { $0.state == .degraded("PERMISSION_DENIED") })
            #expect(try await bus.status(WorkQueue.rulesOutcomes.name).messages == 0)
        }
        await provider.stop()
    }

    @Test func `given an unreadable account, then its app's route pauses and names the file, and the sender starts`()
        async throws
    {
        let folder = try CatalogFolder()
        try folder.write(Array("{}".utf8))
        let settings = try Settings.load(
            keys: FCMSenderApp.keys,
            environment: [
                "AMQP_URL": "amqp://nobody:x@127.0.0.1:1/x",
                "HELIOGRAPH_APPS": folder.catalogFile,
            ])
        let log = CapturingLogger()
        let context = ServiceContext(
            name: "fcm-sender", settings: settings, logger: log.logger, readiness: Readiness())
        _ = try await FCMSenderApp.build(context)
        let lanes = context.readiness.report.conditions.filter { $0.name.hasPrefix("lane-") }
        guard lanes.count == 1, case .degraded(let reason) = lanes[0].state else {
            Issue.record("\(lanes)")
            return
        }
        #expect(reason.contains("account.json"))
        #expect(log.lines.contains { $0.level == .error && $0.metadata["app"] == "demo" })
    }
}

import FoundationEssentials
import HTTP2
import HTTP2Server
import Messaging
import PushProtocol
import PushSending
import ServiceKit
import Synchronization
import Testing
import TestSupport

@testable import FCMSender

/// A request that waits for a stream or the quota contains the lifetime remaining when it is sent.
@Suite(.timeLimit(.minutes(2))) struct PendingRequestWireTests {
    private static let grant = HTTP2ServerStep.respond(
        status: 200, body: Array(#"{"access_token":"AT","expires_in":3599}"#.utf8))
    private static let accepted = HTTP2ServerStep.respond(
        status: 200, body: Array(#"{"name":"projects/demo-project/messages/0:1"}"#.utf8))

    /// The received messages.
    private final class Messages: Sendable {
        private let bodies = Mutex<[JSONValue]>([])

        func add(_ request: HTTP2ServerRequest) {
            // Bodies of another form count as objects without members.
            let body = (try? WireCoding.decode(JSONValue.self, from: request.body)) ?? [:]
            bodies.withLock { $0.append(body["message"] ?? [:]) }
        }

        var all: [JSONValue] { bodies.withLock { $0 } }
        var tokens: [String?] { all.map { $0["token"]?.string } }
    }

    private func server(
        streams: Int = 1000, _ messages: Messages,
        _ answer: @escaping @Sendable (HTTP2ServerRequest) async -> [HTTP2ServerStep]
    ) async throws -> HTTP2Server {
        let certificates = try TestCertificates.shared()
        return try await HTTP2Server.start(
            tls: HTTP2ServerTLS(
                certificateFile: certificates.serverCertificateFile, keyFile: certificates.serverKeyFile),
            settings: HTTP2ServerSettings(maximumConcurrentStreams: streams), logger: .silent
        ) { request in
            if request.path == "/token" { return [Self.grant] }
            messages.add(request)
            return await answer(request)
        }
    }

    private func sender(
        _ server: HTTP2Server, _ folder: CatalogFolder, time: VirtualTime = .init(movesTimeOfDay: true),
        revocations: Revocations? = nil
    ) async throws -> SenderUnderTest {
        try await SenderUnderTest(
            url: "https://localhost:\(server.port)", authorityFile: try TestCertificates.shared().authorityFile,
            folder: folder, environment: ["FCM_CONNECTIONS": "1"], time: time, revocations: revocations)
    }

    private static func push(_ token: String, lifetime: Duration? = nil, at now: Timestamp? = nil) -> Push {
        .sample(
            provider: .fcm, expiresAt: lifetime.flatMap { lifetime in now.map { $0 + lifetime } },
            targets: [.sample(token: token)])
    }

    /// Sends `second` while the only stream is in use. Calls `change` before the stream is free.
    private func outcome(
        of second: Push, _ time: VirtualTime, _ change: (Revocations) throws -> Void
    ) async throws -> (SenderUnderTest.Result, Messages) {
        let (gate, messages, folder) = (Gate(), Messages(), try CatalogFolder())
        let revocations = Revocations(provider: .fcm, capacity: 1000, logger: .silent)
        let server = try await server(streams: 1, messages) { _ in
            await gate.pass()
            return [Self.accepted]
        }
        let sender = try await sender(server, folder, time: time, revocations: revocations)
        async let first = sender.send(Self.push("first"))
        try await eventually("the first has the stream") { messages.all.count == 1 }
        async let result = sender.send(second)
        try await eventually("the second waits") { sender.clients.map(\.statistics.waiting).reduce(0, +) == 1 }
        try change(revocations)
        gate.open()
        #expect(try await first.answers.map(\.disposition) == [.accepted])
        let after = try await result
        await sender.stop()
        await server.shutdown()
        return (after, messages)
    }

    @Test(arguments: [nil, "own"] as [String?])
    func `given a wait for a stream, then the ttl for Android and browsers is the remaining time`(collapse: String?)
        async throws
    {
        let time = VirtualTime(movesTimeOfDay: true)
        var push = Self.push("second", lifetime: .milliseconds(100_500), at: time.clock.now())
        // A collapse key selects the other encoder.
        push.content.collapseKey = collapse
        let (result, messages) = try await outcome(of: push, time) { _ in time.advance(by: .seconds(8)) }
        #expect(result.answers.map(\.disposition) == [.accepted])
        let message = try #require(messages.all.last)
        #expect(message["token"] == "second")
        #expect(message[path: "android.ttl"] == "92s")
        #expect(message[path: "webpush.headers.TTL"] == "92")
        #expect(message[path: "notification.title"] == "Hi")
    }

    @Test func `given a push that waits for a stream, when it expires, then it is not sent`()
        async throws
    {
        let time = VirtualTime(movesTimeOfDay: true)
        let push = Self.push("second", lifetime: .seconds(4), at: time.clock.now())
        let (result, messages) = try await outcome(of: push, time) { _ in time.advance(by: .seconds(5)) }
        #expect(result.answers == [.expired])
        #expect(messages.tokens == ["first"])
    }

    @Test func `given a push that waits for a stream, when its user loses the device, then it is not sent`()
        async throws
    {
        let push = Self.push("second")
        let (result, messages) = try await outcome(of: push, VirtualTime(movesTimeOfDay: true)) { revocations in
            let target = push.targets[0]
            revocations.add([
                try DeviceEvent.loss(of: target.device, .fcm, registeredAt: target.registeredAt).wireBody()
            ])
        }
        #expect(result.answers == [.skipped(reason: "revoked")])
        #expect(messages.tokens == ["first"])
    }

    @Test func `given a wait for the quota, then the ttl is the remaining time`() async throws {
        let (messages, folder) = (Messages(), try CatalogFolder())
        let server = try await server(messages) { request in
            guard String(decoding: request.body, as: UTF8.self).contains("refused") else { return [Self.accepted] }
            let error = #"""
                {"error":{"status":"RESOURCE_EXHAUSTED","details":[
                {"@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode":"QUOTA_EXCEEDED"}]}}
                """#
            return [
                .respond(status: 429, headers: [HTTP2Header(name: "retry-after", value: "50")], body: Array(error.utf8))
            ]
        }
        let sender = try await sender(server, folder)
        let refused = (0..<3).map { Push.Target.sample(token: "refused\($0)") }
        _ = try await sender.send(.sample(provider: .fcm, targets: refused))
        let start = sender.time.clock.now()
        let result = try await sender.send(Self.push("late", lifetime: .seconds(59), at: start))
        #expect(result.answers.map(\.disposition) == [.accepted])
        let left = 59 - (sender.time.clock.now() - start).components.seconds
        // The pause ends after 50 s, and the test clock moves in steps of the waits.
        #expect(left <= 9)
        let message = try #require(messages.all.last)
        #expect(
            message[path: "android.ttl"]?.string.flatMap { Int64($0.dropLast()) }.map { abs($0 - left) <= 1 } == true)
        await sender.stop()
        await server.shutdown()
    }

    @Test(arguments: ["FUTURE_CODE", "INVALID_ARGUMENT"])
    func `given a 401 with any detail, then one new access token is requested, and the route halts`(code: String)
        async throws
    {
        let (messages, folder) = (Messages(), try CatalogFolder())
        let grants = Mutex(0)
        let error = #"""
            {"error":{"code":401,"status":"UNAUTHENTICATED","details":[
            {"@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode":"\#(code)"}]}}
            """#
        let certificates = try TestCertificates.shared()
        let server = try await HTTP2Server.start(
            tls: HTTP2ServerTLS(
                certificateFile: certificates.serverCertificateFile, keyFile: certificates.serverKeyFile),
            logger: .silent
        ) { request in
            if request.path == "/token" {
                let count = grants.withLock { grants in
                    grants += 1
                    return grants
                }
                return [.respond(status: 200, body: Array(#"{"access_token":"AT\#(count)","expires_in":3599}"#.utf8))]
            }
            messages.add(request)
            return [.respond(status: 401, body: Array(error.utf8))]
        }
        let sender = try await sender(server, folder)
        let result = try await sender.send(Self.push("t"))
        #expect(result.answers.isEmpty)
        #expect(sender.trouble == .misconfigured(reason: code))
        #expect(messages.all.count == 2 && grants.withLock { $0 } == 2)
        await sender.stop()
        await server.shutdown()
    }
}

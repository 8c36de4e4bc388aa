import Foundation
import HTTP2
import HTTP2Server
import Messaging
import PushProtocol
import Testing
import TestSupport

@testable import APNsSender
@testable import Providers

/// Requests of rules about broadcast channels.
@Suite(.timeLimit(.minutes(2))) struct ChannelRequestTests {
    private static let channel = ChannelID(rawValue: "dHN0")!
    private static let app = AppID(rawValue: "demo")!

    private static func request(_ operation: ChannelRequest.Operation) -> ChannelRequest {
        ChannelRequest(
            trace: Trace(id: UUID(), correlation: "c", causation: "c"), app: app, environment: .development, id: UUID(),
            operation: operation)
    }

    private static func handle(
        _ request: ChannelRequest, by sender: SenderUnderTest, after age: Duration = .zero
    ) async throws -> Verdict {
        let handler = ChannelRequestHandler(
            channels: sender.gateways.channels, logger: .silent, now: { .sample + age })
        let inbound = Inbound(
            queue: .apnsSenderChannels, exchange: "channels", routingKey: "request.\(request.app)",
            contentType: "application/json", headers: [:], body: try request.wireBody(), redelivered: false,
            firstSeen: .sample)
        return try await handler.handle([Delivery(inbound: inbound, message: try handler.decode(inbound))])[0]
    }

    private static func answer(_ verdict: Verdict) throws -> ChannelAnswer {
        let outbound = try #require(verdict.outbound.first)
        let answer = try ChannelAnswer.decode(wireBody: outbound.body)
        try answer.check(routingKey: outbound.routingKey)
        return answer
    }

    /// Handles a request with APNs that gives this response.
    private func handle(
        _ operation: ChannelRequest.Operation, _ step: HTTP2ServerStep
    ) async throws -> (Verdict, [HTTP2ServerRequest]) {
        let apns = try await ScriptedAPNs.start { _, _ in [step] }
        let catalogs = try AppCatalogs()
        let sender = try await apns.sender(try catalogs.key())
        let verdict = try await Self.handle(Self.request(operation), by: sender)
        withExtendedLifetime(catalogs) {}
        await sender.stop()
        await apns.server.shutdown()
        return (verdict, apns.requests)
    }

    private static func refusal(_ status: Int, _ reason: String) -> HTTP2ServerStep {
        .respond(status: status, body: Array(#"{"reason":"\#(reason)"}"#.utf8))
    }

    @Test func `a channel is created with storage, and deleted`() async throws {
        let created = HTTP2ServerStep.respond(
            status: 201, headers: [HTTP2Header(name: "apns-channel-id", value: "dHN0")])
        let (verdict, requests) = try await handle(.create, created)
        #expect(try Self.answer(verdict).result == .created(Self.channel))
        let body: JSONValue = ["message-storage-policy": 1, "push-type": "LiveActivity"]
        #expect(try WireCoding.decode(JSONValue.self, from: requests[0].body) == body)
        #expect(requests[0].method == "POST" && requests[0].path == "/1/apps/com.example.app/channels")
        #expect(requests[0].headers["authorization"]?.hasPrefix("bearer ") == true)
        let (deletion, deletions) = try await handle(.delete(Self.channel), .respond(status: 204))
        #expect(try Self.answer(deletion).result == .deleted)
        #expect(deletions[0].method == "DELETE" && deletions[0].headers["apns-channel-id"] == "dHN0")
    }

    @Test(arguments: ["FeatureNotEnabled", "CannotCreateChannelConfig", "TopicMismatch"])
    func `a refusal is answered with its reason`(reason: String) async throws {
        let (verdict, _) = try await handle(.create, Self.refusal(400, reason))
        #expect(verdict.disposition == .done)
        #expect(try Self.answer(verdict).result == .refused(reason: reason))
    }

    @Test(arguments: ["ChannelNotRegistered", "BadChannelId"])
    func `a channel that APNs does not know is deleted`(reason: String) async throws {
        let (verdict, _) = try await handle(.delete(Self.channel), Self.refusal(400, reason))
        #expect(try Self.answer(verdict).result == .deleted)
    }

    @Test(arguments: [429, 500, 503])
    func `a request that APNs does not answer now has no answer, so that rules asks again`(status: Int) async throws {
        let (verdict, _) = try await handle(.create, Self.refusal(status, "TooManyRequests"))
        #expect(verdict.disposition.label == "discard" && verdict.outbound.isEmpty)
    }

    @Test func `a request that waited too long is dropped`() async throws {
        try await SimulatedAPNs.run { apns, sender in
            let late = ChannelRequestHandler.patience + .milliseconds(1)
            let verdict = try await Self.handle(Self.request(.create), by: sender, after: late)
            #expect(verdict.disposition.label == "discard" && verdict.outbound.isEmpty)
        }
    }

    @Test func `an app without a signing key is refused, and an unknown app is asked again`() async throws {
        let channels = ChannelManagement([.development: "https://localhost:1"], caFile: nil)
        let request = Self.request(.create)
        await #expect(throws: ChannelManagement.Unavailable.self) { try await channels.perform(request) }
        channels.refuse(Self.app)
        #expect(try await channels.perform(request) == .refused(reason: "no-signing-key"))
    }

    @Test func `a request under another app's routing key is dead-lettered`() throws {
        let request = Self.request(.create)
        #expect(throws: WireError.self) { try request.check(routingKey: "request.other") }
    }

    @Test func `the simulator creates, lists and deletes a channel`() async throws {
        try await SimulatedAPNs.run { apns, sender in
            let created = try Self.answer(try await Self.handle(Self.request(.create), by: sender))
            guard case .created(let channel) = created.result else {
                Issue.record("\(created)")
                return
            }
            for _ in 0..<2 {
                let deleted = try await Self.handle(Self.request(.delete(channel)), by: sender)
                #expect(try Self.answer(deleted).result == .deleted)
            }
        }
    }
}

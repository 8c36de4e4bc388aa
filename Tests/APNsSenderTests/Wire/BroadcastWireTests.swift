import FoundationEssentials
import HTTP2
import HTTP2Server
import Messaging
import PushProtocol
import PushSending
import ServiceKit
import Testing
import TestSupport

@testable import APNsSender
@testable import Providers

/// A push to a broadcast channel.
@Suite(.timeLimit(.minutes(2))) struct BroadcastWireTests {
    private let channel = Push.Target(
        device: UUID(), token: DeviceToken(secret: "dHN0"), address: .channel, notification: UUID(),
        registeredAt: .sample)
    private let update: JSONValue = ["aps": ["timestamp": 1_767_225_600, "event": "update", "content-state": ["s": 3]]]

    private func send(
        _ content: Content, target: Push.Target? = nil, answer: HTTP2ServerStep = .respond(status: 200)
    ) async throws -> (SenderUnderTest.Result, [HTTP2ServerRequest], CircuitBreaker.OpenCause?) {
        let apns = try await ScriptedAPNs.start { _, _ in [answer] }
        let catalogs = try AppCatalogs()
        let sender = try await apns.sender(try catalogs.key())
        let result = try await sender.send(.sample(content, targets: [target ?? channel]))
        let trouble = sender.trouble()
        await sender.stop()
        await apns.server.shutdown()
        return (result, apns.requests, trouble)
    }

    @Test func `A30: a broadcast goes to the channel, without topic and device headers`() async throws {
        let (result, requests, _) = try await send(
            Content(apns: APNsOverride(payload: update)),
            answer: .respond(status: 200, headers: [HTTP2Header(name: "apns-unique-id", value: "U-1")]))
        #expect(result.answers == [.accepted(id: "u-1")])
        let request = try #require(requests.first)
        #expect(request.method == "POST" && request.path == "/4/broadcasts/apps/com.example.app")
        let fields = Dictionary(
            request.headers.filter { $0.name.hasPrefix("apns-") }.map { ($0.name, $0.value) }
        ) { first, _ in first }
        #expect(
            fields == [
                "apns-channel-id": "dHN0", "apns-push-type": "liveactivity", "apns-priority": "10",
                "apns-expiration": "0",
            ])
        #expect(request.headers["authorization"]?.hasPrefix("bearer ") == true)
        #expect(try WireCoding.decode(JSONValue.self, from: request.body) == update)
    }

    @Test func `an invalid broadcast is rejected before sending`() async throws {
        let start: JSONValue = [
            "aps": [
                "timestamp": 1, "event": "start", "alert": "x", "attributes-type": "G", "attributes": [:],
                "content-state": [:],
            ]
        ]
        let large: JSONValue = [
            "aps": [
                "timestamp": 1, "event": "update", "content-state": ["s": .string(String(repeating: "a", count: 5120))],
            ]
        ]
        for (content, reason) in [
            (Content(body: "x"), "live-activity-without-timestamp"),
            (Content(apns: APNsOverride(payload: start)), "broadcast-cannot-start-a-live-activity"),
            (Content(apns: APNsOverride(payload: large)), "payload-too-large"),
            (Content(body: "x", apns: .init(headers: ["apns-push-type": "alert"])), "broadcast-not-liveactivity"),
        ] {
            let (result, requests, _) = try await send(content)
            #expect(result.answers == [.rejected(reason: reason, suspectToken: false)])
            #expect(requests.isEmpty)
        }
        var strange = channel
        strange.token = DeviceToken(secret: "a\r\nb")
        let (result, requests, _) = try await send(Content(apns: APNsOverride(payload: update)), target: strange)
        #expect(result.answers == [.rejected(reason: "malformed-channel-id", suspectToken: false)])
        #expect(requests.isEmpty)
    }

    @Test(arguments: Push.Address.allCases.filter { $0 != .channel })
    func `an address of FCM is rejected`(address: Push.Address) async throws {
        var foreign = channel
        foreign.address = address
        let (result, requests, _) = try await send(Content(body: "x"), target: foreign)
        #expect(result.answers == [.rejected(reason: "address-not-of-apns", suspectToken: false)])
        #expect(requests.isEmpty)
    }

    /// Which reasons concern the broadcast, and which concern the credential (ProviderFacts.md §A.9, §A.11).
    @Test(arguments: [
        (403, "TopicMismatch", true), (400, "FeatureNotEnabled", true), (403, "Forbidden", true),
        (400, "TopicDisallowed", true), (404, "BadPath", true), (403, "InvalidProviderToken", false),
    ]) func `a rejected broadcast does not affect devices, unless the key is rejected`(
        status: Int, reason: String, isAlone: Bool
    ) async throws {
        let apns = try await ScriptedAPNs.start { request, _ in
            request.path.hasPrefix("/4/")
                ? [.respond(status: status, body: Array(#"{"reason":"\#(reason)"}"#.utf8))] : [.respond(status: 200)]
        }
        let catalogs = try AppCatalogs()
        let sender = try await apns.sender(try catalogs.key())
        let devices = (1...3).map { Push.Target.sample(token: "0\($0)") }
        let content = Content(apns: APNsOverride(headers: ["apns-push-type": "liveactivity"], payload: update))
        let result = try await sender.send(.sample(content, targets: [channel] + devices))
        if isAlone {
            #expect(result.answers.first == .misconfigured(reason: reason))
            #expect(result.answers.dropFirst().map(\.disposition) == [.accepted, .accepted, .accepted])
            #expect(sender.trouble() == nil)
            #expect(apns.requests.count { $0.path.hasPrefix("/4/") } == 1)
        } else {
            #expect(sender.trouble() == .misconfigured(reason: reason))
            #expect(result.held != nil)
        }
        await sender.stop()
        await apns.server.shutdown()
    }

    @Test(arguments: APNsBroadcastReason.allCases) func `every broadcast reason has a consequence`(
        reason: APNsBroadcastReason
    ) async throws {
        let status = reason == .serviceUnavailable ? 503 : 400
        let (result, requests, trouble) = try await send(
            Content(apns: APNsOverride(payload: update)),
            answer: .respond(status: status, body: Array(#"{"reason":"\#(reason.rawValue)"}"#.utf8)))
        #expect(requests.count == 1)
        switch reason {
        case .featureNotEnabled, .topicMismatch:
            #expect(result.answers == [.misconfigured(reason: reason.rawValue)])
            #expect(trouble == nil)
        case .serviceUnavailable: #expect(result.retry == .seconds(900))
        case .channelNotRegistered, .missingChannelID, .badChannelID, .badRequestParameters, .badRequestPayload,
            .missingPushType, .cannotCreateChannelConfiguration:
            #expect(result.answers == [.rejected(reason: reason.rawValue, suspectToken: false)])
        }
    }
}

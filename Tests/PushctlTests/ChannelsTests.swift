import Foundation
import HTTP2
import HTTP2Server
import JWTKit
import Logging
import Providers
import PushProtocol
import ServiceKit
import Synchronization
import Testing
import TestSupport

@testable import Pushctl

/// APNs channel management over TLS and HTTP/2.
@Suite(.timeLimit(.minutes(2))) struct ChannelsTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
        try folder.write("key.p8", ES256PrivateKey().pemRepresentation)
    }

    private func app(certificate: Bool = false) -> APNsAppConfiguration {
        let certificates = APNsCertificate(certificateFile: "a.pem", keyFile: "a.pem")
        return certificate
            ? APNsAppConfiguration(topic: "com.example.app", certificates: [.production: certificates])
            : APNsAppConfiguration(
                topic: "com.example.app", keyID: "ABC123DEFG", teamID: "DEF123GHIJ",
                keyFile: "\(folder.path)/key.p8")
    }

    /// Performs `operation` against a server with this response.
    private func perform(
        _ operation: ChannelOperation, answer: HTTP2ServerStep
    ) async throws -> (Result<ChannelOperation.Result, any Error>, HTTP2ServerRequest?) {
        let provider = try await FakeProvider.start { _ in [answer] }
        let settings = try Settings.load(
            keys: ChannelManagementClient.keys,
            environment: [
                "APNS_CHANNELS_SANDBOX_URL": provider.url,
                "PROVIDER_CA_FILE": try TestCertificates.shared().authorityFile,
            ])
        let directory = try ChannelManagementClient(app(), .development, settings)
        let result: Result<ChannelOperation.Result, any Error>
        do {
            result = .success(try await directory.perform(operation))
        } catch {
            result = .failure(error)
        }
        let request = provider.requests.first
        await provider.stop()
        return (result, request)
    }

    @Test
    func `A31: create sends policy and push type, and prints the id from the header`() async throws {
        let (result, request) = try await perform(
            .create(.mostRecent),
            answer: .respond(status: 201, headers: [HTTP2Header(name: "apns-channel-id", value: "dHN0")]))
        #expect(try result.get() == .init(lines: ["dHN0"], json: ["channel": "dHN0"]))
        #expect(request?.method == "POST")
        #expect(request?.path == "/1/apps/com.example.app/channels")
        #expect(
            try WireCoding.decode(JSONValue.self, from: request?.body ?? [])
                == ["message-storage-policy": 1, "push-type": "LiveActivity"])
        #expect(request?.headers["authorization"]?.hasPrefix("bearer ") == true)
        #expect(request?.headers["apns-channel-id"] == nil)
    }

    @Test func `A31: each environment has its host and port`() throws {
        let settings = try Settings.load(keys: ChannelManagementClient.keys, environment: [:])
        #expect(
            try ChannelManagementClient(app(), .development, settings).url
                == "https://api-manage-broadcast.sandbox.push.apple.com:2195")
        #expect(
            try ChannelManagementClient(app(), .production, settings).url
                == "https://api-manage-broadcast.push.apple.com:2196")
    }

    @Test func `read and delete send the channel id in a header`() async throws {
        let body = Array(#"{"message-storage-policy":0,"push-type":"LiveActivity"}"#.utf8)
        let (read, asked) = try await perform(.read(channel: "dHN0"), answer: .respond(status: 200, body: body))
        #expect(try read.get().lines == ["dHN0  storage: none  push type: LiveActivity"])
        #expect(asked?.method == "GET" && asked?.path == "/1/apps/com.example.app/channels")
        #expect(asked?.headers["apns-channel-id"] == "dHN0")
        let (deleted, request) = try await perform(.delete(channel: "dHN0"), answer: .respond(status: 204))
        #expect(try deleted.get() == .init(lines: ["deleted dHN0"], json: ["deleted": "dHN0"]))
        #expect(request?.method == "DELETE" && request?.headers["apns-channel-id"] == "dHN0")
    }

    @Test func `list prints every id`() async throws {
        let (result, request) = try await perform(
            .list, answer: .respond(status: 200, body: Array(#"{"channels":["dHN0","dHN1"]}"#.utf8)))
        #expect(try result.get() == .init(lines: ["dHN0", "dHN1"], json: ["channels": ["dHN0", "dHN1"]]))
        #expect(request?.method == "GET" && request?.path == "/1/apps/com.example.app/all-channels")
    }

    @Test(arguments: [
        ("FeatureNotEnabled", "capability"), ("CannotCreateChannelConfig", "10,000"),
        ("ChannelNotRegistered", "no such channel"), ("TopicMismatch", "bundle id"), ("InvalidProviderToken", "key-id"),
        ("SomethingNew", "APNs answered 400: SomethingNew"),
    ])
    func `an error suggests a fix`(reason: String, word: String) async throws {
        let (result, _) = try await perform(
            .create(.none), answer: .respond(status: 400, body: Array(#"{"reason":"\#(reason)"}"#.utf8)))
        guard case .failure(let error as CommandError) = result else {
            Issue.record("\(result)")
            return
        }
        #expect(error.description.contains(reason) && error.description.contains(word))
    }

    @Test func `an app with certificates cannot manage channels`() throws {
        let settings = try Settings.load(keys: ChannelManagementClient.keys, environment: [:])
        #expect(throws: CommandError.self) {
            try ChannelManagementClient(app(certificate: true), .production, settings)
        }
    }

    @Test func `a broadcast is a push to the channel with derived ids`() throws {
        let payload: JSONValue = ["aps": ["timestamp": 1, "event": "update", "content-state": ["s": 1]]]
        func push(_ payload: JSONValue, _ channel: String = "dHN0") throws -> Push {
            try ChannelBroadcast(
                app: AppID(rawValue: "demo")!, environment: .development, channel: channel, payload: payload,
                priority: 5, expiresAt: nil
            ).push(at: Timestamp(milliseconds: 0))
        }
        let one = try push(payload)
        #expect(one.targets.map(\.address) == [.channel] && one.targets.map(\.token.secret) == ["dHN0"])
        #expect(one.content.apns?.headers == ["apns-push-type": "liveactivity", "apns-priority": "5"])
        #expect(one.content.apns?.payload == payload)
        #expect(try push(payload) == one)
        #expect(try push(["aps": ["timestamp": 2]]).trace.id != one.trace.id)
        #expect(try push(payload, "dHN1").trace.id != one.trace.id)
        #expect(throws: CommandError.self) { try push(["timestamp": 1]) }
    }
}

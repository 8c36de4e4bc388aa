import CryptoExtras
import Foundation
import HTTP2
import HTTP2Server
import HTTPSFetch
import PushProtocol
import Testing
import TestSupport

@testable import Pushctl

/// Topic subscriptions over HTTPS, with an access token of the app's service account.
@Suite(.timeLimit(.minutes(1))) struct TopicClientTests {
    private func run(
        _ answer: @escaping @Sendable (HTTP2ServerRequest) -> [HTTP2ServerStep],
        _ body: (TopicClient, FakeProvider) async throws -> Void
    ) async throws {
        let provider = try await FakeProvider.start { request in
            guard request.path == "/token" else { return answer(request) }
            return [.respond(status: 200, body: Array(#"{"access_token":"AT","expires_in":3599}"#.utf8))]
        }
        let file = FileManager.default.temporaryDirectory.appending(path: "\(UUID().uuidString).json")
        defer { try? FileManager.default.removeItem(at: file) }
        let account = [
            "project_id": "demo-project", "private_key_id": "key-1", "client_email": "push@demo-project.example",
            "private_key": try _RSA.Signing.PrivateKey(keySize: .bits2048).pemRepresentation,
        ]
        try JSONEncoder().encode(account).write(to: file)
        let client = TopicClient(
            subscription: TopicSubscription(change: .subscribe, topic: "news"), accountFile: file.path(),
            tokenURL: "\(provider.url)/token",
            fetch: HTTPSFetch(caFile: try TestCertificates.shared().authorityFile))
        try await body(client, provider)
        await provider.stop()
    }

    @Test func `each registration is one request, and results keep their order`() async throws {
        try await run({ request in
            let status = request.path.contains("/t7/") ? 404 : 409
            return [.respond(status: status, body: Array(#"{"error":{"status":"NOT_FOUND"}}"#.utf8))]
        }) { client, provider in
            let answers = try await client.send((0..<50).map { DeviceToken(secret: "t\($0)") }, at: provider.url)
            #expect(answers.count == 50)
            for (place, answer) in answers.enumerated() { #expect(answer == (place == 7 ? .unregistered : .done)) }
            let calls = provider.requests.filter { $0.path != "/token" }
            #expect(Set(calls.map { $0.headers["authorization"] }) == ["Bearer AT"])
            #expect(Set(calls.map(\.path)).count == 50)
            #expect(provider.requests.count == 51)
        }
    }

    @Test func `the legacy API gets a thousand tokens per request`() async throws {
        try await run({ request in
            let count = String(decoding: request.body, as: UTF8.self).components(separatedBy: #""t"#).count - 2
            let results = Array(repeating: "{}", count: max(count, 0)).joined(separator: ",")
            return [.respond(status: 200, body: Array(#"{"results":[\#(results)]}"#.utf8))]
        }) { client, provider in
            let tokens = (0..<1500).map { DeviceToken(secret: "t\($0)") }
            let answers = try await client.sendLegacy(tokens, at: provider.url)
            #expect(answers == Array(repeating: .done, count: 1500))
            let calls = provider.requests.filter { $0.path == "/iid/v1:batchAdd" }
            #expect(calls.count == 2)
            #expect(calls.first?.headers["access_token_auth"] == "true")
        }
    }
}

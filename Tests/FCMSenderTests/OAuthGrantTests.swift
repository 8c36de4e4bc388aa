import Foundation
import JWTKit
import Providers
import PushProtocol
import PushSending
import Synchronization
import Testing
import TestSupport

@testable import FCMSender

@Suite(.timeLimit(.minutes(2))) struct OAuthGrantTests {
    /// A key generated for these tests.
    static let key = TestKey.rsa

    private static func file(key: String = key, extra: [String: JSONValue] = [:]) throws -> [UInt8] {
        let members: [String: JSONValue] = [
            "type": "service_account", "project_id": "demo-project", "private_key_id": "key-1",
            "private_key": .string(key), "client_email": "push@demo-project.example",
            "token_uri": "https://localhost/token",
        ]
        return JSONText.bytes(of: .object(members.merging(extra) { $1 }))
    }

    private struct Claims: JWTPayload, Equatable {
        var iss, scope, aud: String
        var iat, exp: Int
        func verify(using algorithm: some JWTAlgorithm) {}
    }

    @Test func `O01: the assertion is RS256 over Google's claims, in a form`() async throws {
        let account = try ServiceAccount(try Self.file(), path: "account.json")
        let form = String(decoding: try await OAuthGrant.form(for: account, now: .sample), as: UTF8.self)
        let prefix = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion="
        #expect(form.hasPrefix(prefix))
        let keys = JWTKeyCollection()
        let key = try Insecure.RSA.PrivateKey(pem: Self.key).publicKey
        await keys.add(rsa: key, digestAlgorithm: .sha256, kid: "key-1")
        let claims = try await keys.verify(String(form.dropFirst(prefix.count)), as: Claims.self)
        #expect(
            claims
                == Claims(
                    iss: "push@demo-project.example", scope: "https://www.googleapis.com/auth/firebase.messaging",
                    aud: "https://oauth2.googleapis.com/token", iat: 1_767_225_600, exp: 1_767_229_200))
    }

    @Test(arguments: [#""expires_in":3599"#, #""expires_in":"3599""#])
    func `an access token is renewed five minutes early, for a number and a string lifetime`(life: String) throws {
        let minted = try OAuthGrant.credential(
            status: 200, body: Array(#"{"access_token":"AT","token_type":"Bearer",\#(life)}"#.utf8))
        #expect(minted.authorization == "Bearer AT")
        #expect(minted.renewAfter == .seconds(3299))
        #expect(minted.usableFor == .seconds(3599))
    }

    @Test(arguments: [
        (408, "{}"), (429, "{}"), (500, "<html>"), (503, ""), (504, "{}"),
        (400, #"{"error":"temporarily_unavailable"}"#),
        (200, "{}"), (200, "<html>"), (200, #"{"access_token":"a b","expires_in":1}"#),
        (200, #"{"access_token":"a","expires_in":0}"#),
    ]) func `transient token errors are retried`(status: Int, body: String) {
        let error = #expect(throws: CredentialError.self) {
            try OAuthGrant.credential(status: status, body: Array(body.utf8))
        }
        guard case .unavailable = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test func `a missing lifetime and a missing access token have different errors`() {
        func reason(_ body: String) -> String? {
            let error = #expect(throws: CredentialError.self) {
                try OAuthGrant.credential(status: 200, body: Array(body.utf8))
            }
            return error?.description
        }
        #expect(reason(#"{"access_token":"a"}"#)?.contains("no valid expires_in") == true)
        #expect(reason(#"{"expires_in":3599}"#)?.contains("has no access token") == true)
    }

    @Test func `the token endpoint's error text is sanitized`() {
        let error = #expect(throws: CredentialError.self) {
            try OAuthGrant.credential(status: 400, body: Array(#"{"error":"in\nva\u0000lid"}"#.utf8))
        }
        #expect(error == .refused(reason: "the token endpoint refuses the service account: invalid"))
    }

    @Test(arguments: [(400, #"{"error":"invalid_grant"}"#), (401, #"{"error":"invalid_client"}"#), (403, "")])
    func `permanent token errors are reported as refused`(status: Int, body: String) {
        let error = #expect(throws: CredentialError.self) {
            try OAuthGrant.credential(status: status, body: Array(body.utf8))
        }
        guard case .refused = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test func `O02 O03: one access token serves all callers until five minutes before its end`() async throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "\(UUID().uuidString).json").path()
        try Data(try Self.file()).write(to: URL(filePath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        let calls = Mutex<[String]>([]), uptime = Mutex(Duration.zero)
        let clock = SenderClock(now: { .sample }, uptime: { uptime.withLock { $0 } }, sleep: { _ in })
        let token = AccessTokenProvider(
            keyFile: path, project: "demo-project", tokenURL: nil,
            account: { () throws(CredentialError) in try ServiceAccount.load(path: path) }
        ) { url, _ in
            let count = calls.withLock { calls in
                calls.append(url)
                return calls.count
            }
            return (200, Array(#"{"access_token":"AT\#(count)","expires_in":3599}"#.utf8))
        }
        let source = token.source(clock: clock)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<500 {
                group.addTask {
                    let authorization = try await source.current().authorization
                    #expect(authorization == "Bearer AT1")
                }
            }
            try await group.waitForAll()
        }
        uptime.withLock { $0 = .seconds(3200) }
        #expect(try await source.current().authorization == "Bearer AT1")
        #expect(calls.withLock { $0 } == ["https://localhost/token"])
        uptime.withLock { $0 = .seconds(3400) }
        _ = try await source.current()
        try await eventually(within: .seconds(60)) { try await source.current().authorization == "Bearer AT2" }
        #expect(calls.withLock(\.count) == 2)
    }

    @Test func `given an unusable key file, then the error names the file without its contents`() async throws {
        let missing = #expect(throws: CredentialError.self) { try ServiceAccount.load(path: "/nonexistent.json") }
        #expect(missing?.description.contains("/nonexistent.json") == true)
        #expect(throws: CredentialError.self) { try ServiceAccount(Array("not json".utf8), path: "a.json") }
        #expect(throws: CredentialError.self) {
            try ServiceAccount(try Self.file(extra: ["project_id": "a/../b"]), path: "a.json")
        }
        let account = try ServiceAccount(try Self.file(key: "c2VjcmV0"), path: "a.json")
        let error = await #expect(throws: CredentialError.self) {
            try await OAuthGrant.assertion(for: account, now: .sample)
        }
        #expect(error?.description.contains("c2VjcmV0") == false)
        #expect("\(account)" == "service account of demo-project")
        var dumped = ""
        dump(account, to: &dumped)
        #expect(!dumped.contains("c2VjcmV0"))
    }
}

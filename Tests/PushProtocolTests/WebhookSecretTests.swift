import Foundation
import PushProtocol
import Testing

@Suite struct WebhookSecretTests {
    private static let first = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    private static let second = "whsec_" + Data(repeating: 7, count: 32).base64EncodedString()

    /// The example of the Standard Webhooks libraries.
    @Test func `a signature is that of Standard Webhooks`() throws {
        let secret = try #require(WebhookSecret(Self.first))
        let signature = WebhookSecret.signature(
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp: 1_614_265_330, body: Array(#"{"test": 2432232314}"#.utf8),
            secrets: [secret])
        #expect(signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
    }

    @Test func `each secret of a rotation signs, the first one first`() throws {
        let secrets = try #require(WebhookSecret.secrets(in: "\(Self.first)\n\n  \(Self.second)\r\n"))
        func signature(_ secrets: [WebhookSecret]) -> String {
            WebhookSecret.signature(id: "a", timestamp: 1, body: [1], secrets: secrets)
        }
        #expect(signature(secrets) == "\(signature([secrets[0]])) \(signature([secrets[1]]))")
        #expect(signature([secrets[0]]) != signature([secrets[1]]))
    }

    @Test func `id, time and body are signed`() throws {
        let secret = try #require(WebhookSecret(Self.first))
        let signatures = [("a", 1, [1]), ("b", 1, [1]), ("a", 2, [1]), ("a", 1, [2])].map { id, time, body in
            WebhookSecret.signature(id: id, timestamp: Int64(time), body: body.map(UInt8.init), secrets: [secret])
        }
        #expect(Set(signatures).count == 4)
    }

    @Test(arguments: [
        "", "whsec_", "whsec_!!!!", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_" + Data(count: 23).base64EncodedString(),
        "whsec_" + Data(count: 65).base64EncodedString(),
    ]) func `another text is not a secret`(text: String) {
        #expect(WebhookSecret(text) == nil)
        #expect(WebhookSecret.secrets(in: text) == nil)
    }

    @Test func `a file has at most four secrets, and no other line`() {
        #expect(WebhookSecret.secrets(in: Array(repeating: Self.first, count: 4).joined(separator: "\n"))?.count == 4)
        #expect(WebhookSecret.secrets(in: Array(repeating: Self.first, count: 5).joined(separator: "\n")) == nil)
        #expect(WebhookSecret.secrets(in: "\(Self.first)\npassword") == nil)
    }

    @Test func `a printed secret shows nothing of it`() throws {
        let secret = try #require(WebhookSecret(Self.first))
        #expect("\(secret) \(String(reflecting: secret))" == "whsec_… whsec_…")
    }
}

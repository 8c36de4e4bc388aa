import Logging
import PushProtocol
import Testing

@testable import ServiceKit

@Suite struct RedactionTests {
    @Test(arguments: [
        "token", "device_token", "Authorization", "password", "client-secret", "key", "api_key", "privateKey", "jwt",
        "operator-key", "cookie",
    ])
    func `metadata with a secret's key is masked`(key: String) {
        #expect(Redaction.redacted([key: "hunter2"])[key] == "‹redacted›")
        #expect(Redaction.redacted(["outer": [key: "hunter2"]])["outer"] == [key: "‹redacted›"])
    }

    @Test(arguments: ["routing_key", "collapse-key", "key_id", "app", "queue"])
    func `metadata of other keys is not masked`(key: String) {
        #expect(Redaction.redacted([key: "value"])[key] == "value")
    }

    @Test(
        arguments: [
            ("amqp://user:hunter2@broker/vhost", "amqp://user:‹redacted›@broker/vhost"),
            ("cannot reach postgres://a:b@c:d@host:5432/x, twice amqps://u:p@h", nil),
            ("https://host/path?a=b", "https://host/path?a=b"),
            ("mail a:b@c", "mail a:b@c"),
            ("Bearer eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln rest", "Bearer ‹redacted› rest"),
            ("eyJust text", "eyJust text"),
            ("", ""),
        ] as [(String, String?)])
    func `passwords in URLs and web tokens are masked in any text`(text: String, expected: String?) {
        let redacted = Redaction.redacted(text)
        if let expected { #expect(redacted == expected) }
        for secret in ["hunter2", "b@c:d", ":p@", "c2ln"] where text.contains("://") || text.contains("eyJh") {
            #expect(!redacted.contains(secret), "\(redacted)")
        }
    }

    @Test func `a device token is redacted under any key`() {
        let metadata = Redaction.redacted(["device": "\(DeviceToken(secret: "hunter2"))"])
        #expect(metadata["device"] == "‹redacted›")
    }
}

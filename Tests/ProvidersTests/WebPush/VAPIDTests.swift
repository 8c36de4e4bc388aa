import Crypto
import PushProtocol
import TestSupport
import Testing

@testable import Providers

/// RFC 8292: keys, signed tokens and their reuse.
@Suite struct VAPIDTests {
    private static func key() throws -> VAPIDKey {
        try VAPIDKey(privateKey: Base64URL.text(of: Array(33...64)))
    }

    private static func token(for origin: String, at now: Timestamp = .sample) throws -> VAPIDToken {
        try VAPIDToken.sign(
            for: origin, key: key(), contact: VAPIDContact("mailto:push@example.com"), at: now)
    }

    /// The verification of this suite accepts what others signed.
    @Test(arguments: [
        // RFC 8292 §2.4.
        "vapid t=eyJ0eXAiOiJKV1QiLCJhbGciOiJFUzI1NiJ9.eyJhdWQiOiJodHRwczovL3B1c2guZXhhbXBsZS5uZXQiLCJleHAiOjE0NTM1MjM3"
            + "NjgsInN1YiI6Im1haWx0bzpwdXNoQGV4YW1wbGUuY29tIn0.i3CYb7t4xfxCDquptFOepC9GAu_HLGkMlMuCGSK2rpiUfnK9ojFwDXb1"
            + "JrErtmysazNjjvW2L9OkSSHzvoD1oA, "
            + "k=BA1Hxzyi1RUM1b5wjxsn7nGxAszw2u61m164i3MrAIxHF6YK5h4SDYic-dRuU_RCPCfA5aq9ojSwk5Y2EmClBPs",
        // py_vapid 1.9.6, by make_vectors.py.
        "vapid t=eyJ0eXAiOiJKV1QiLCJhbGciOiJFUzI1NiJ9.eyJhdWQiOiJodHRwczovL3B1c2guZXhhbXBsZSIsImV4cCI6MTc2NzI2ODgwMCwic"
            + "3ViIjoibWFpbHRvOnB1c2hAZXhhbXBsZS5jb20ifQ.jyWBPRb03RLSUV0otN1O8CF3nJfPC0wPT30EtZB1T_NwIk9ffv_IxB2o-zFfDj"
            + "visx9hI_cBoz5Ct2m1VuuAyg,"
            + "k=BB8UAUa_sbJR-E9N2-DUzc_Xev2YSpUg41eUAh-DErue7JlaCLH6dwTfPcwLUKlmUmP7dxH5X5-KRJxQluR8iSs",
    ]) func `tokens of others are valid`(authorization: String) throws {
        #expect(try ReadAuthorization(authorization).isValid)
    }

    @Test func `a token names the push service, a time within 24 hours, the contact and the key`() throws {
        let token = try Self.token(for: "https://push.example")
        let read = try ReadAuthorization(token.authorization)
        #expect(read.isValid)
        #expect(read.header == ["alg": "ES256", "typ": "JWT"])
        // The claims that py_vapid signed for the vector.
        #expect(
            read.claims == [
                "aud": "https://push.example", "exp": 1_767_268_800, "sub": "mailto:push@example.com",
            ])
        #expect(
            read.publicKey
                == "BB8UAUa_sbJR-E9N2-DUzc_Xev2YSpUg41eUAh-DErue7JlaCLH6dwTfPcwLUKlmUmP7dxH5X5-KRJxQluR8iSs")
        #expect(token.expiresAt - token.issuedAt <= .seconds(24 * 3600))
    }

    @Test func `given another text or key, the signature is not valid`() throws {
        let token = try Self.token(for: "https://push.example").authorization
        let other = try Self.token(for: "https://other.example").authorization
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        let others = other.split(separator: ".", omittingEmptySubsequences: false)
        #expect(try !ReadAuthorization("\(parts[0]).\(others[1]).\(parts[2])").isValid)
        let key = try Self.key().publicKey
        #expect(try !ReadAuthorization(token.replacing(key, with: VAPIDKey().publicKey)).isValid)
    }

    @Test func `a generated key is read again, and prints without its private part`() throws {
        let key = VAPIDKey()
        let again = try VAPIDKey(privateKey: key.privateKey)
        #expect(again.publicKey == key.publicKey)
        #expect(Base64URL.bytes(of: key.publicKey)?.count == 65)
        #expect(!"\(key)\(String(reflecting: key))".contains(key.privateKey))
        #expect("\(try Self.token(for: "https://push.example"))" == "‹redacted›")
    }

    @Test func `a text that is no key is refused without being quoted`() throws {
        func problem(_ text: String) -> String? {
            do {
                _ = try VAPIDKey(privateKey: text)
                return nil
            } catch {
                return error.description
            }
        }
        #expect(problem("-----BEGIN PRIVATE KEY-----") == "the VAPID private key is not base64url without padding")
        #expect(
            problem(VAPIDKey().publicKey)
                == "the VAPID private key has 65 bytes instead of 32; is it the public key?")
        #expect(problem("") == "the VAPID private key has 0 bytes instead of 32; is it the public key?")
        let zero = Base64URL.text(of: [UInt8](repeating: 0, count: 32))
        #expect(problem(zero) == "the VAPID private key is not a key of the curve P-256")
    }

    @Test(arguments: [
        "mailto:push@example.com", "https://example.com/contact", "https://example.com",
        "mailto:a.b+c@mail.example.org",
    ]) func `a contact that push services reach is accepted`(uri: String) throws {
        #expect(try VAPIDContact(uri).uri == uri)
    }

    @Test(arguments: [
        "", "push@example.com", "http://example.com", "mailto:", "mailto:push", "mailto:@example.com",
        "mailto:Push <push@example.com>", "mailto:<push@example.com>", "mailto:push@localhost",
        "mailto:a@b@example.com",
        "mailto:push@mail.local", "https://localhost/", "https://", "https://example..com", "mailto: push@example.com",
    ]) func `another contact is refused`(uri: String) {
        #expect(throws: VAPIDKey.Problem.self) { try VAPIDContact(uri) }
    }

    @Test func `a token is signed once per push service, and again at half of its life`() throws {
        var cache = VAPIDTokenCache()
        var signed: [String] = []
        func use(_ origin: String, _ hours: Double) throws -> VAPIDToken {
            let now = Timestamp.sample + .seconds(hours * 3600)
            return try cache.token(for: origin, at: now) { origin in
                signed.append(origin)
                return try Self.token(for: origin, at: now)
            }
        }
        let first = try use("https://a.example", 0)
        #expect(try use("https://a.example", 5.99) == first)
        let other = try use("https://b.example", 1)
        #expect(other != first)
        #expect(signed == ["https://a.example", "https://b.example"])
        let second = try use("https://a.example", 6)
        #expect(second != first)
        #expect(second.issuedAt == .sample + .seconds(6 * 3600))
        #expect(signed.count == 3)
    }

    @Test func `given a clock that was set back, the token is replaced`() throws {
        var cache = VAPIDTokenCache()
        let origin = "https://a.example"
        let first = try cache.token(for: origin, at: .sample) { try Self.token(for: $0) }
        let slightlyBack = try cache.token(for: origin, at: .sample - .seconds(60)) { try Self.token(for: $0) }
        #expect(slightlyBack == first)
        let back = Timestamp.sample - .seconds(3600)
        #expect(try cache.token(for: origin, at: back) { try Self.token(for: $0, at: back) }.issuedAt == back)
    }

    @Test func `a refused token is replaced, and one that replaced it stays`() throws {
        var cache = VAPIDTokenCache()
        let origin = "https://a.example"
        let first = try cache.token(for: origin, at: .sample) { try Self.token(for: $0) }
        cache.remove(first, for: origin)
        #expect(cache.count == 0)
        let second = try cache.token(for: origin, at: .sample) { try Self.token(for: $0) }
        cache.remove(first, for: origin)
        #expect(try cache.token(for: origin, at: .sample) { try Self.token(for: $0) } == second)
    }

    @Test func `given many push services, the least recently used token makes room`() throws {
        var cache = VAPIDTokenCache(capacity: 2)
        var signed: [String] = []
        for origin in ["a", "b", "a", "c", "a", "b"] {
            _ = try cache.token(for: "https://\(origin).example", at: .sample) {
                signed.append(origin)
                return try Self.token(for: $0)
            }
            #expect(cache.count <= 2)
        }
        #expect(signed == ["a", "b", "c", "b"])
    }

    @Test func `given a failed signature, nothing is stored`() {
        struct Failure: Error {}
        var cache = VAPIDTokenCache()
        #expect(throws: Failure.self) {
            try cache.token(for: "https://a.example", at: .sample) { _ in throw Failure() }
        }
        #expect(cache.count == 0)
    }
}

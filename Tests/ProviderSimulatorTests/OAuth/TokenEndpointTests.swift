import CryptoExtras
import JWTKit
import PushProtocol
import Testing

@testable import ProviderSimulator

@Suite struct TokenEndpointTests {
    static let now = Fixture.now.seconds
    static let header: JSONValue = ["alg": "RS256", "typ": "JWT", "kid": "key-1"]
    static let claims: JSONValue = [
        "iss": .string(Fixture.account), "aud": "https://oauth2.googleapis.com/token", "iat": .int(now),
        "exp": .int(now + 3600), "scope": "https://www.googleapis.com/auth/firebase.messaging",
    ]

    static func ask(
        _ assertion: String, _ simulator: Simulator = Fixture.simulator(),
        grantType: String = "urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer"
    ) -> ReceivedResponse? {
        let form = "grant_type=\(grantType)&assertion=\(assertion)"
        return ReceivedResponse(simulator.respondGoogle(Fixture.google("/token", Array(form.utf8))))
    }

    static func error(_ changes: JSONValue, header: JSONValue = header) -> String? {
        ask(Signing.rs256(header, claims.merging(changes)))?.body?["error"]?.string
    }

    @Test func `O01, a valid assertion gets an access token that FCM accepts`() throws {
        let simulator = Fixture.simulator()
        let answer = Self.ask(Signing.rs256(Self.header, Self.claims), simulator)
        #expect(answer?.status == 200)
        #expect(answer?.body?["expires_in"] == 3599)
        #expect(answer?.body?["token_type"] == "Bearer")
        let token = try #require(answer?.body?["access_token"]?.string)
        let send = Fixture.google(
            "/v1/projects/demo-project/messages:send", Array(#"{"message":{"token":"t"}}"#.utf8),
            headers: [Header("authorization", "Bearer \(token)")])
        #expect(ReceivedResponse(simulator.respondGoogle(send))?.status == 200)
        #expect(simulator.log.requests(of: .oauth).count == 1)
        #expect(simulator.log.requests(of: .fcm).count == 1)
    }

    @Test func `an assertion signed by another library is valid`() async throws {
        struct Claims: JWTPayload {
            let iss, aud, scope: String
            let iat, exp: Int64
            func verify(using algorithm: some JWTAlgorithm) async throws {}
        }
        let claims = Claims(
            iss: Fixture.account, aud: "https://oauth2.googleapis.com/token",
            scope: "https://www.googleapis.com/auth/cloud-platform", iat: Self.now, exp: Self.now + 3600)
        let key = try Insecure.RSA.PrivateKey(pem: Signing.accountKey.pemRepresentation)
        let keys = await JWTKeyCollection().add(rsa: key, digestAlgorithm: .sha256, kid: "key-1")
        #expect(Self.ask(try await keys.sign(claims, kid: "key-1"))?.status == 200)
    }

    @Test func `an assertion with one mistake is rejected`() {
        #expect(Self.error([:]) == nil)
        #expect(Self.error(["iss": "nobody@example.com"]) == "invalid_grant")
        #expect(Self.error(["aud": "https://localhost/token"]) == "invalid_grant")
        #expect(Self.error(["scope": "https://www.googleapis.com/auth/drive"]) == "invalid_scope")
        #expect(Self.error(["exp": .int(Self.now + 3601)]) == "invalid_grant")
        #expect(Self.error(["exp": .int(Self.now)]) == "invalid_grant")
        #expect(Self.error(["iat": .int(Self.now + 301), "exp": .int(Self.now + 900)]) == "invalid_grant")
        #expect(Self.error(["iat": .int(Self.now - 3900), "exp": .int(Self.now - 300)]) == "invalid_grant")
        #expect(Self.error(["iat": "now"]) == "invalid_grant")
        #expect(Self.error(["iat": .int(.min), "exp": .int(.max)]) == "invalid_grant")
        #expect(Self.error([:], header: ["alg": "RS256", "kid": "key-2"]) == "invalid_grant")
        #expect(Self.error([:], header: ["alg": "ES256", "kid": "key-1"]) == "invalid_grant")
    }

    @Test func `a forged assertion is rejected`() {
        let forged = Signing.rs256(Self.header, Self.claims, key: Signing.otherAccountKey)
        #expect(Self.ask(forged)?.body?["error"] == "invalid_grant")
        #expect(Self.ask(Signing.unsigned(Self.header, Self.claims) + ".")?.body?["error"] == "invalid_grant")
        #expect(Self.ask("nonsense")?.body?["error"] == "invalid_grant")
    }

    @Test func `another grant type, or none, is rejected`() {
        let assertion = Signing.rs256(Self.header, Self.claims)
        #expect(Self.ask(assertion, grantType: "password")?.body?["error"] == "unsupported_grant_type")
        #expect(Self.ask("")?.body?["error"] == "invalid_request")
        let get = Fixture.google("/token", [], method: "GET")
        #expect(ReceivedResponse(Fixture.simulator().respondGoogle(get))?.status == 400)
    }

    @Test func `outages and unusual lifetimes can be scripted`() throws {
        let simulator = Fixture.simulator()
        try simulator.play(
            #"[{"provider":"oauth","status":503,"count":2,"retry_after":3},{"provider":"oauth","expires_in":"60"}]"#)
        let assertion = Signing.rs256(Self.header, Self.claims)
        let outage = Self.ask(assertion, simulator)
        #expect(outage?.status == 503 && outage?.headers["retry-after"] == "3")
        #expect(outage?.body?["error"] == "internal_failure")
        #expect(Self.ask(assertion, simulator)?.status == 503)
        let granted = Self.ask(assertion, simulator)?.body
        #expect(granted?["expires_in"] == "60")
        let token = try #require(granted?["access_token"]?.string)
        #expect(simulator.state.accessTokens.grant(for: token, at: Fixture.now + .seconds(59)) != nil)
        #expect(simulator.state.accessTokens.grant(for: token, at: Fixture.now + .seconds(60)) == nil)
    }
}

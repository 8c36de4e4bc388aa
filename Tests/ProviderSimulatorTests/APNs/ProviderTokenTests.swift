import Crypto
import Foundation
import JWTKit
import PushProtocol
import Testing

@testable import ProviderSimulator

@Suite struct ProviderTokenTests {
    static func reason(_ token: String, at now: Timestamp = Fixture.now) -> String? {
        Fixture.simulator().push {
            $0["authorization"] = "bearer \(token)"
            $0.receivedAt = now
        }?.reason
    }

    static let header: JSONValue = ["alg": "ES256", "kid": .string(Fixture.keyID)]
    static let claims: JSONValue = ["iss": .string(Fixture.teamID), "iat": .int(Fixture.now.seconds)]

    @Test func `a token signed by another library is valid`() async throws {
        struct Claims: JWTPayload {
            let iss: String
            let iat: Int64
            func verify(using algorithm: some JWTAlgorithm) async throws {}
        }
        let key = try ES256PrivateKey(pem: Signing.apnsKey.pemRepresentation)
        let keys = await JWTKeyCollection().add(ecdsa: key, kid: JWKIdentifier(string: Fixture.keyID))
        let claims = Claims(iss: Fixture.teamID, iat: Fixture.now.seconds)
        let token = try await keys.sign(claims, kid: JWKIdentifier(string: Fixture.keyID))
        #expect(Self.reason(token) == nil)
    }

    @Test func `an iat in a string is valid, as a common library sends it`() {
        let claims: JSONValue = ["iss": .string(Fixture.teamID), "iat": .string("\(Fixture.now.seconds)")]
        #expect(Self.reason(Signing.es256(Self.header, claims)) == nil)
    }

    @Test func `a DER signature is rejected`() throws {
        let text = Signing.unsigned(Self.header, Self.claims)
        let der = try Signing.apnsKey.signature(for: Data(text.utf8)).derRepresentation
        #expect(Self.reason(text + "." + Base64URL.text(of: der)) == "InvalidProviderToken")
    }

    @Test func `a signature by another key is rejected`() {
        let token = Signing.es256(Self.header, Self.claims, key: Signing.otherKey)
        #expect(Self.reason(token) == "InvalidProviderToken")
    }

    @Test func `a token with changed claims is rejected`() {
        var parts = Signing.es256(Self.header, Self.claims).split(separator: ".").map(String.init)
        parts[1] = Base64URL.text(of: Array(#"{"iss":"DEF123GHIJ","iat":1767225601}"#.utf8))
        #expect(Self.reason(parts.joined(separator: ".")) == "InvalidProviderToken")
    }

    @Test(arguments: ["HS256", "none", "RS256"]) func `another algorithm is rejected`(algorithm: String) {
        let token = Signing.es256(["alg": .string(algorithm), "kid": .string(Fixture.keyID)], Self.claims)
        #expect(Self.reason(token) == "InvalidProviderToken")
    }

    static let unclear: [(JSONValue, JSONValue)] = [
        (["alg": "ES256"], claims), (["alg": "ES256", "kid": "UNKNOWN123"], claims),
        (header, ["iss": "OTHERTEAM1", "iat": 1_767_225_600]), (header, ["iss": "DEF123GHIJ"]),
        (header, ["iss": "DEF123GHIJ", "iat": "soon"]),
        (header, ["iss": "DEF123GHIJ", "iat": 9_223_372_036_854_775_807]),
    ]

    @Test(arguments: unclear)
    func `a token without issuer or issue time is rejected`(header: JSONValue, claims: JSONValue) {
        #expect(Self.reason(Signing.es256(header, claims)) == "InvalidProviderToken")
    }

    @Test(arguments: ["", "a", "a.b.c", "a.b", "....", "e30.e30.", "e30=.e30.AA"])
    func `text that is not a JWT is rejected`(text: String) {
        #expect(Self.reason(text) == "InvalidProviderToken")
    }

    @Test func `a token is valid for an hour`() {
        let token = Signing.providerToken()
        #expect(Self.reason(token, at: Fixture.now + .seconds(3600)) == nil)
        #expect(Self.reason(token, at: Fixture.now + .seconds(3601)) == "ExpiredProviderToken")
        #expect(Self.reason(token, at: Fixture.now + .seconds(-3600)) == nil)
        #expect(Self.reason(token, at: Fixture.now + .seconds(-3601)) == "InvalidProviderToken")
    }

    @Test func `an iat in milliseconds is rejected`() {
        let token = Signing.providerToken(issuedAt: Fixture.now.milliseconds)
        #expect(Self.reason(token) == "InvalidProviderToken")
    }
}

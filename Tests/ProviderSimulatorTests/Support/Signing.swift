import Crypto
import CryptoExtras
import Foundation
import PushProtocol

@testable import ProviderSimulator

/// Signs tokens without a JWT library, so that tests can make any mistake.
enum Signing {
    static let apnsKey = P256.Signing.PrivateKey()
    static let otherKey = P256.Signing.PrivateKey()
    static let accountKey = try! _RSA.Signing.PrivateKey(keySize: .bits2048)
    static let otherAccountKey = try! _RSA.Signing.PrivateKey(keySize: .bits2048)

    /// The signing input of a JWT.
    static func unsigned(_ header: JSONValue, _ claims: JSONValue) -> String {
        [header, claims].map { value in
            var writer = JSONWriter()
            writer.value(value)
            return Base64URL.text(of: writer.bytes)
        }.joined(separator: ".")
    }

    static func es256(_ header: JSONValue, _ claims: JSONValue, key: P256.Signing.PrivateKey = apnsKey) -> String {
        let text = unsigned(header, claims)
        return text + "." + Base64URL.text(of: try! key.signature(for: Data(text.utf8)).rawRepresentation)
    }

    static func rs256(_ header: JSONValue, _ claims: JSONValue, key: _RSA.Signing.PrivateKey = accountKey) -> String {
        let text = unsigned(header, claims)
        let digest = SHA256.hash(data: Data(text.utf8))
        let signature = try! key.signature(for: digest, padding: .insecurePKCS1v1_5)
        return text + "." + Base64URL.text(of: signature.rawRepresentation)
    }

    /// A valid provider token.
    static func providerToken(
        issuedAt: Int64 = Fixture.now.seconds, keyID: String = Fixture.keyID, teamID: String = Fixture.teamID,
        key: P256.Signing.PrivateKey = apnsKey
    ) -> String {
        es256(
            ["alg": "ES256", "kid": .string(keyID)], ["iss": .string(teamID), "iat": .int(issuedAt)], key: key)
    }
}

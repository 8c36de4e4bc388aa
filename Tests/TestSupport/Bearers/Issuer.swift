package import JWTKit
package import PushProtocol
import CryptoExtras
import Foundation

/// A token issuer with any header, claims and key, valid or not.
package struct Issuer: Sendable {
    package let algorithm: any JWTAlgorithm
    /// The JWK that verifies its tokens.
    package let jwk: JSONValue
    /// The PEM key or the secret.
    package let material: String

    package static func ecdsa(_ id: String? = nil) async throws -> Issuer {
        let key = ES256PrivateKey()
        let keys = JWTKeyCollection()
        await keys.add(ecdsa: key)
        let point = key.publicKey.parameters!
        return Issuer(
            algorithm: try await keys.getKey(),
            jwk: jwk(["kty": "EC", "crv": "P-256", "x": url(point.x), "y": url(point.y)], id),
            material: key.publicKey.pemRepresentation)
    }

    package static func rsa(_ id: String? = nil) async throws -> Issuer {
        let key = try Insecure.RSA.PrivateKey(backing: _RSA.Signing.PrivateKey(keySize: .bits2048))
        let keys = JWTKeyCollection()
        await keys.add(rsa: key, digestAlgorithm: .sha256)
        let (modulus, exponent) = try key.publicKey.getKeyPrimitives()
        return Issuer(
            algorithm: try await keys.getKey(),
            jwk: jwk(
                ["kty": "RSA", "n": url(modulus.base64EncodedString()), "e": url(exponent.base64EncodedString())], id),
            material: key.publicKey.pemRepresentation)
    }

    package static func hmac(_ secret: String, _ id: String? = nil) async throws -> Issuer {
        let keys = JWTKeyCollection()
        await keys.add(hmac: HMACKey(from: secret), digestAlgorithm: .sha256)
        return Issuer(
            algorithm: try await keys.getKey(),
            jwk: jwk(["kty": "oct", "k": url(Data(secret.utf8).base64EncodedString())], id), material: secret)
    }

    package static func set(_ issuers: Issuer...) throws -> String { try set(of: issuers.map(\.jwk)) }

    package static func set(of keys: [JSONValue]) throws -> String {
        String(decoding: try WireCoding.encode(["keys": .array(keys)] as JSONValue), as: UTF8.self)
    }

    /// A token with this issuer's algorithm and key in its header, with `header` changes. A null member is removed.
    package func token(_ claims: JSONValue, header changes: [String: JSONValue] = [:]) throws -> String {
        var header: [String: JSONValue] = ["alg": .string(algorithm.name), "typ": "JWT"]
        if let id = jwk["kid"] { header["kid"] = id }
        let members = header.merging(changes) { $1 }.filter { $0.value != .null }
        let text = try Self.part(.object(members)) + "." + Self.part(claims)
        return text + "." + Self.url(Data(try algorithm.sign(Array(text.utf8))).base64EncodedString())
    }

    package static func part(_ value: JSONValue) throws -> String {
        url(Data(try WireCoding.encode(value)).base64EncodedString())
    }

    static func url(_ base64: String) -> String {
        base64.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }

    private static func url(_ base64: String) -> JSONValue { .string(url(base64)) }

    private static func jwk(_ members: [String: JSONValue], _ id: String?) -> JSONValue {
        .object(members.merging(id.map { ["kid": .string($0)] } ?? [:]) { $1 })
    }
}

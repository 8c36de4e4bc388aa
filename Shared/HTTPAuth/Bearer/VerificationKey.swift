import FoundationEssentials
import JWTKit
import PushProtocol
import ServiceKit

/// A key bound to one algorithm: a token's `alg` never decides how a key is used (RFC 8725 §3.1).
struct VerificationKey: Sendable {
    /// The `kid` of a JWK; `nil` for a key without one, which is tried for every token.
    let id: String?
    private let algorithm: any JWTAlgorithm

    private init(id: String?, _ add: (JWTKeyCollection) async throws -> Void) async throws {
        let collection = JWTKeyCollection()
        try await add(collection)
        self.id = id
        algorithm = try await collection.getKey()
    }

    /// Whether the token's signature is valid for this key. HMACs are compared in constant time.
    func hasSigned(_ token: SignedToken) -> Bool {
        // JWTKit throws for a malformed signature.
        (try? algorithm.verify(token.signature, signs: token.signedBytes)) == true
    }
}

/// The reason for which key material is unusable. Contains nothing of the material.
struct KeyMaterialError: Error, CustomStringConvertible {
    let description: String
}

extension VerificationKey {
    /// Reads the keys of a file or response: PEM, a secret in the first line, a JWK, or a JWK set. In a set, keys for
    /// other algorithms and uses are ignored (RFC 7517 §5).
    static func keys(
        in material: [UInt8], for algorithm: BearerVerification.Algorithm
    ) async throws(KeyMaterialError) -> [VerificationKey] {
        guard let text = String(validating: material, as: UTF8.self) else {
            throw KeyMaterialError(description: "is not UTF-8 text")
        }
        guard text.first(where: { !$0.isWhitespace }) == "{" else { return [try await key(in: text, for: algorithm)] }
        guard let json = try? WireCoding.decode(JSONValue.self, from: material) else {
            throw KeyMaterialError(description: "is not JSON")
        }
        var keys: [VerificationKey] = []
        for jwk in json["keys"]?.array ?? [json] where jwk.isMeant(for: algorithm) {
            keys.append(try await key(from: jwk, for: algorithm))
        }
        guard !keys.isEmpty else {
            throw KeyMaterialError(description: "contains no key for \(algorithm.rawValue) signatures")
        }
        return keys
    }

    private static func key(
        in text: String, for algorithm: BearerVerification.Algorithm
    ) async throws(KeyMaterialError) -> VerificationKey {
        let isPEM = text.contains("-----BEGIN")
        do {
            switch algorithm {
            case .es256:
                let key = try ES256PublicKey(pem: text)
                return try await VerificationKey(id: nil) { await $0.add(ecdsa: key) }
            case .rs256:
                let key = try Insecure.RSA.PublicKey(pem: text)
                return try await VerificationKey(id: nil) { await $0.add(rsa: key, digestAlgorithm: .sha256) }
            case .hs256 where isPEM:
                throw KeyMaterialError(description: "is PEM; HS256 takes a shared secret, not a public key")
            case .hs256:
                return try await secret(
                    text.split(whereSeparator: \.isNewline).first.map { Array($0.utf8) } ?? [], id: nil)
            }
        } catch let error as KeyMaterialError {
            throw error
        } catch {
            throw KeyMaterialError(description: "is not a public key (PEM) for \(algorithm.rawValue)")
        }
    }

    /// Reads a JWK; of an asymmetric key only the public members.
    private static func key(
        from jwk: JSONValue, for algorithm: BearerVerification.Algorithm
    ) async throws(KeyMaterialError) -> VerificationKey {
        let id = jwk["kid"]?.string
        do {
            switch algorithm {
            case .es256:
                let key = try ES256PublicKey(parameters: (x: jwk["x"]?.string ?? "", y: jwk["y"]?.string ?? ""))
                return try await VerificationKey(id: id) { await $0.add(ecdsa: key) }
            case .rs256:
                let key = try Insecure.RSA.PublicKey(
                    modulus: jwk["n"]?.string ?? "", exponent: jwk["e"]?.string ?? "")
                return try await VerificationKey(id: id) { await $0.add(rsa: key, digestAlgorithm: .sha256) }
            case .hs256:
                return try await secret([UInt8](base64URL: jwk["k"]?.string ?? "") ?? [], id: id)
            }
        } catch let error as KeyMaterialError {
            throw error
        } catch {
            throw KeyMaterialError(description: "contains a JWK that is not a usable key for \(algorithm.rawValue)")
        }
    }

    /// Creates an HS256 key. The secret must be at least as long as the hash (RFC 7518 §3.2).
    private static func secret(_ bytes: [UInt8], id: String?) async throws -> VerificationKey {
        guard bytes.count >= 32 else {
            throw KeyMaterialError(description: "contains a secret of \(bytes.count) bytes; HS256 needs 32 or more")
        }
        return try await VerificationKey(id: id) {
            await $0.add(hmac: HMACKey(from: bytes), digestAlgorithm: .sha256)
        }
    }
}

extension JSONValue {
    /// Whether a JWK has the algorithm's key type and no other `alg`, `use` or `key_ops` (RFC 7517 §4).
    fileprivate func isMeant(for algorithm: BearerVerification.Algorithm) -> Bool {
        let isOfKind =
            switch algorithm {
            case .es256: self["kty"] == "EC" && self["crv"] == "P-256"
            case .rs256: self["kty"] == "RSA"
            case .hs256: self["kty"] == "oct"
            }
        return isOfKind && (self["alg"] == nil || self["alg"]?.string == algorithm.rawValue)
            && (self["use"] == nil || self["use"] == "sig")
            && self["key_ops"]?.array?.contains("verify") != false
    }
}

import FoundationEssentials
import JWTKit
import PushProtocol
import ServiceKit

/// One key, bound to one algorithm: what a token names never decides what a key is used for (RFC 8725 §3.1).
struct VerificationKey: Sendable {
    /// The `kid` of a JWK; `nil` for a key without a name, which may have signed any token.
    let id: String?
    private let algorithm: any JWTAlgorithm

    private init(id: String?, _ add: (JWTKeyCollection) async throws -> Void) async throws {
        let collection = JWTKeyCollection()
        try await add(collection)
        self.id = id
        algorithm = try await collection.getKey()
    }

    /// Whether this key made the signature. Secrets are compared in constant time.
    func hasSigned(_ token: SignedToken) -> Bool {
        // A signature of another form, such as one that is too short, is thrown at.
        (try? algorithm.verify(token.signature, signs: token.signedBytes)) == true
    }
}

/// Why keys cannot be taken from where they should be. Holds nothing of what is there.
struct UnusableKeys: Error, CustomStringConvertible {
    let description: String
}

extension VerificationKey {
    /// The keys in a file or an answer: PEM, the line with a secret, a JWK or a JWK set. Of a set, keys for other
    /// algorithms and other uses are left aside (RFC 7517 §5).
    static func keys(
        in material: [UInt8], for algorithm: BearerVerification.Algorithm
    ) async throws(UnusableKeys) -> [VerificationKey] {
        guard let text = String(validating: material, as: UTF8.self) else {
            throw UnusableKeys(description: "is not UTF-8 text")
        }
        guard text.first(where: { !$0.isWhitespace }) == "{" else { return [try await key(in: text, for: algorithm)] }
        guard let json = try? WireCoding.decode(JSONValue.self, from: material) else {
            throw UnusableKeys(description: "is not JSON")
        }
        var keys: [VerificationKey] = []
        for jwk in json["keys"]?.array ?? [json] where jwk.isMeant(for: algorithm) {
            keys.append(try await key(from: jwk, for: algorithm))
        }
        guard !keys.isEmpty else {
            throw UnusableKeys(description: "holds no key for \(algorithm.rawValue) signatures")
        }
        return keys
    }

    private static func key(
        in text: String, for algorithm: BearerVerification.Algorithm
    ) async throws(UnusableKeys) -> VerificationKey {
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
                throw UnusableKeys(description: "is PEM, and what others may have is no secret")
            case .hs256:
                return try await secret(
                    text.split(whereSeparator: \.isNewline).first.map { Array($0.utf8) } ?? [], id: nil)
            }
        } catch let error as UnusableKeys {
            throw error
        } catch {
            throw UnusableKeys(description: "is not a public key (PEM) for \(algorithm.rawValue)")
        }
    }

    /// Of an asymmetric key the public members alone are read, whatever else is there.
    private static func key(
        from jwk: JSONValue, for algorithm: BearerVerification.Algorithm
    ) async throws(UnusableKeys) -> VerificationKey {
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
        } catch let error as UnusableKeys {
            throw error
        } catch {
            throw UnusableKeys(description: "holds a JWK that is not a usable key for \(algorithm.rawValue)")
        }
    }

    /// RFC 7518 §3.2: as long as the hash, or longer.
    private static func secret(_ bytes: [UInt8], id: String?) async throws -> VerificationKey {
        guard bytes.count >= 32 else {
            throw UnusableKeys(description: "holds a secret of \(bytes.count) bytes; HS256 takes one of 32 or more")
        }
        return try await VerificationKey(id: id) {
            await $0.add(hmac: HMACKey(from: bytes), digestAlgorithm: .sha256)
        }
    }
}

extension JSONValue {
    /// Whether a JWK is of the algorithm's kind, and nothing in it says that it is for something else (RFC 7517 §4).
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

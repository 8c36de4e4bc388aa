import Crypto
import PushProtocol

/// A verified provider token: its key and issue time (ProviderFacts.md §A.8).
struct ProviderToken: Sendable {
    let key: APNsKey
    /// Unix seconds.
    let issuedAt: Int64

    /// The maximum age, and the maximum lead of `iat` over the clock. In seconds.
    static let lifetime: Int64 = 3600

    /// Verifies everything but the age, which changes while the token is in use.
    init(_ text: some StringProtocol, apps: KnownApps) throws(APNsRejection) {
        guard let jwt = CompactJWT(text) else { throw Self.invalid("it is not a JSON Web Token") }
        guard jwt.algorithm == "ES256" else { throw Self.invalid("its alg is not ES256") }
        guard let keyID = jwt.keyID, let key = apps.apnsKeys[keyID] else {
            throw Self.invalid("its kid is not a known key")
        }
        guard jwt.claims["iss"]?.string == key.teamID else { throw Self.invalid("its iss is not the team of the key") }
        guard let issuedAt = Self.issuedAt(jwt.claims["iat"]) else { throw Self.invalid("its iat is not Unix seconds") }
        // JWS requires r‖s (RFC 7518 §3.4). Many signing libraries produce DER by default.
        guard jwt.signature.count == 64,
            let signature = try? P256.Signing.ECDSASignature(rawRepresentation: jwt.signature)
        else { throw Self.invalid("its signature is not the 64 bytes of r and s") }
        guard key.publicKeys.contains(where: { $0.isValidSignature(signature, for: jwt.signedBytes) }) else {
            throw Self.invalid("its signature was not made by the key of its kid")
        }
        self.key = key
        self.issuedAt = issuedAt
    }

    func checkAge(at now: Timestamp) throws(APNsRejection) {
        let age = now.seconds - issuedAt
        if age > Self.lifetime {
            throw APNsRejection(.expiredProviderToken, "the provider token is \(age / 60) minutes old")
        }
        if age < -Self.lifetime { throw Self.invalid("its iat is \(-age / 60) minutes ahead") }
    }

    /// Accepts a number, or a string as a widely used library sends it.
    private static func issuedAt(_ value: JSONValue?) -> Int64? {
        let seconds: Int64? =
            switch value {
            case .int(let seconds): seconds
            case .string(let text): Int64(text)
            case .double(let seconds): Int64(exactly: seconds.rounded(.down))
            case .null, .bool, .array, .object, nil: nil
            }
        return seconds.flatMap { (0...0xffff_ffff_ffff).contains($0) ? $0 : nil }
    }

    private static func invalid(_ problem: String) -> APNsRejection {
        APNsRejection(.invalidProviderToken, "the provider token is not accepted: \(problem)")
    }
}

import Crypto
import PushProtocol

/// A provider token that verified: who signed it and when (push-protocols A.8).
struct ProviderToken: Sendable {
    let key: APNsKey
    /// Unix seconds.
    let issuedAt: Int64

    /// How long a provider token is good for, and how far ahead of the clock its `iat` may be. In seconds.
    static let lifetime: Int64 = 3600

    /// Verifies everything about a token but its age, which changes while it is in use.
    init(_ text: some StringProtocol, apps: KnownApps) throws(APNsRefusal) {
        guard let jwt = CompactJWT(text) else { throw Self.invalid("it is not a JSON Web Token") }
        guard jwt.algorithm == "ES256" else { throw Self.invalid("its alg is not ES256") }
        guard let keyID = jwt.keyID, let key = apps.apnsKeys[keyID] else { throw Self.invalid("its kid is unknown") }
        guard jwt.claims["iss"]?.string == key.teamID else { throw Self.invalid("its iss is not the key's team") }
        guard let issuedAt = Self.issuedAt(jwt.claims["iat"]) else { throw Self.invalid("its iat is not Unix seconds") }
        // JOSE wants r‖s; DER, which most signers make unless told otherwise, is the usual mistake.
        guard jwt.signature.count == 64,
            let signature = try? P256.Signing.ECDSASignature(rawRepresentation: jwt.signature)
        else { throw Self.invalid("its signature is not the 64 bytes of r and s") }
        guard key.publicKeys.contains(where: { $0.isValidSignature(signature, for: jwt.signedBytes) }) else {
            throw Self.invalid("its signature is not by the key its kid names")
        }
        self.key = key
        self.issuedAt = issuedAt
    }

    func checkAge(at now: Timestamp) throws(APNsRefusal) {
        let age = now.seconds - issuedAt
        if age > Self.lifetime {
            throw APNsRefusal(.expiredProviderToken, "the provider token is \(age / 60) minutes old")
        }
        if age < -Self.lifetime { throw Self.invalid("its iat is \(-age / 60) minutes ahead") }
    }

    /// Seconds as a number, and as a string because a widely used library sends that (A.8).
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

    private static func invalid(_ problem: String) -> APNsRefusal {
        APNsRefusal(.invalidProviderToken, "the provider token is not accepted: \(problem)")
    }
}

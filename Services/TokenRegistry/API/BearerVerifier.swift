import FoundationEssentials
import JWTKit
import PushProtocol
import ServiceKit

/// Who a bearer token says is calling: a user of one app.
struct Caller: Hashable, Sendable {
    var app: AppID
    var user: UserID
}

/// Why a bearer token is not accepted. Which check failed is told; nothing of the token is.
enum BearerRefusal: Error, Hashable, Sendable {
    case missing
    case malformed
    case untrusted
    case expired
    case notYetValid
    case wrongIssuer
    case wrongAudience
    case noUser(claim: String)

    var message: String {
        switch self {
        case .missing: "send an Authorization header: Bearer <token>"
        case .malformed: "the bearer token is not a signed JWT"
        case .untrusted: "the bearer token is not signed with a key that is configured for any app"
        case .expired: "the bearer token has expired"
        case .notYetValid: "the bearer token is not valid yet"
        case .wrongIssuer: "the bearer token is from another issuer"
        case .wrongAudience: "the bearer token is for another audience"
        case .noUser(let claim): "the bearer token has no usable “\(claim)” claim"
        }
    }
}

/// Verifies bearer tokens against the keys of every configured app; the key that fits decides the app.
///
/// The algorithm comes from the configuration, never from the token: a token that names another one is refused before
/// its signature is looked at (RFC 8725 §3.1).
struct BearerVerifier: Sendable {
    private let keys: [TrustedKey]
    private let now: @Sendable () -> Date

    /// Reads every key file of the catalog.
    init(_ catalog: AppCatalog, now: @escaping @Sendable () -> Date = { Date() }) async throws {
        var keys: [TrustedKey] = []
        for app in catalog.apps {
            for verification in app.bearer { keys.append(try await TrustedKey(app: app.id, verification)) }
        }
        self.keys = keys
        self.now = now
    }

    /// The caller a token speaks for. With several keys the most telling refusal is given.
    func verify(_ token: String) async throws(BearerRefusal) -> Caller {
        guard let algorithm = Self.algorithm(of: token) else { throw .malformed }
        var refusal = BearerRefusal.untrusted
        for key in keys where key.verification.algorithm.rawValue == algorithm {
            guard let claims = await key.verifiedClaims(of: token) else { continue }
            do {
                return try key.caller(from: claims, now: now())
            } catch {
                refusal = error
            }
        }
        throw refusal
    }

    /// The `alg` of the token's header.
    private static func algorithm(of token: String) -> String? {
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let header = Data(base64URL: parts[0]),
            let value = try? WireCoding.decode(JSONValue.self, from: Array(header), maximumSize: 4096)
        else { return nil }
        return value["alg"]?.string
    }
}

/// One configured key, ready to verify with.
private struct TrustedKey: Sendable {
    let app: AppID
    let verification: BearerVerification
    private let collection: JWTKeyCollection

    init(app: AppID, _ verification: BearerVerification) async throws {
        self.app = app
        self.verification = verification
        collection = JWTKeyCollection()
        let material: String
        do {
            material = try String(contentsOfFile: verification.keyFile, encoding: .utf8)
            switch verification.algorithm {
            case .es256: await collection.add(ecdsa: try ES256PublicKey(pem: material))
            case .rs256:
                await collection.add(rsa: try Insecure.RSA.PublicKey(pem: material), digestAlgorithm: .sha256)
            case .hs256:
                let secret = material.split(whereSeparator: \.isNewline).first.map(String.init) ?? ""
                guard secret.utf8.count >= 32 else { throw KeyTooShort() }
                await collection.add(hmac: HMACKey(from: secret), digestAlgorithm: .sha256)
            }
        } catch {
            let what = error is KeyTooShort ? "an HS256 secret must have at least 32 bytes" : "not a usable key"
            throw ConfigurationError(
                "apps.\(app).bearer: \(verification.keyFile): \(what) for \(verification.algorithm.rawValue)")
        }
    }

    private struct KeyTooShort: Error {}

    /// The claims, if this key signed the token. Times are checked afterwards, with the configured leeway.
    func verifiedClaims(of token: String) async -> JSONValue? {
        // A signature that does not fit is the ordinary case here: another app's key may.
        try? await collection.verify(token, as: Claims.self).value
    }

    func caller(from claims: JSONValue, now: Date) throws(BearerRefusal) -> Caller {
        let leeway = Double(verification.leeway.components.seconds)
        let seconds = now.timeIntervalSince1970
        guard let expiry = claims["exp"]?.number, seconds < expiry + leeway else { throw .expired }
        if let start = claims["nbf"]?.number, seconds < start - leeway { throw .notYetValid }
        if let issuer = verification.issuer, claims["iss"]?.string != issuer { throw .wrongIssuer }
        if let audience = verification.audience {
            let named = claims["aud"]?.array?.compactMap(\.string) ?? [claims["aud"]?.string].compactMap { $0 }
            guard named.contains(audience) else { throw .wrongAudience }
        }
        let name = claims[verification.userClaim]
        guard let text = name?.string ?? name?.int.map(String.init), let user = UserID(rawValue: text) else {
            throw .noUser(claim: verification.userClaim)
        }
        return Caller(app: app, user: user)
    }
}

/// Any claims: what they must say is the configuration's business.
private struct Claims: JWTPayload {
    let value: JSONValue

    init(from decoder: any Decoder) throws { value = try JSONValue(from: decoder) }
    func encode(to encoder: any Encoder) throws { try value.encode(to: encoder) }
    func verify(using algorithm: some JWTAlgorithm) async throws {}
}

extension JSONValue {
    fileprivate var number: Double? {
        switch self {
        case .int(let value): Double(value)
        case .double(let value): value
        case .null, .bool, .string, .array, .object: nil
        }
    }
}

extension Data {
    /// Base64url without padding (RFC 7515 §2).
    fileprivate init?(base64URL text: Substring) {
        var base64 = text.replacing("-", with: "+").replacing("_", with: "/")
        base64 += String(repeating: "=", count: (4 - base64.count % 4) % 4)
        self.init(base64Encoded: String(base64))
    }
}

import Crypto
import PushProtocol

/// The sender's identification in a request: `authorization: vapid t=<JWT>, k=<public key>` (RFC 8292 §3).
struct VAPIDAuthorization: Sendable {
    /// The maximum lead of `exp` over the clock, in seconds (RFC 8292 §2).
    static let maximumLifetime = 86_400.0

    private let token: CompactJWT
    private let key: [UInt8]

    /// Reads the header. The parameters may have any order, and quotation marks.
    init(_ header: String?) throws(WebPushRejection) {
        guard let header, let scheme = header.split(separator: " ", maxSplits: 1).first, scheme.lowercased() == "vapid"
        else { throw WebPushRejection(.missingAuthorization, "the request has no authorization with the scheme vapid") }
        var parameters: [String: String] = [:]
        for part in header.dropFirst(scheme.count).split(separator: ",") {
            let pair = part.split(separator: "=", maxSplits: 1)
            guard pair.count == 2 else { continue }
            parameters[String(pair[0].trimmed).lowercased()] = String(pair[1].trimmed.trimmed("\""))
        }
        guard let token = parameters["t"].flatMap(CompactJWT.init) else {
            throw Self.invalid("its parameter t is not a JSON Web Token")
        }
        guard let key = parameters["k"].flatMap({ Base64URL.bytes(of: $0) }), key.count == 65 else {
            throw Self.invalid("its parameter k is not an uncompressed P-256 point in base64url")
        }
        self.token = token
        self.key = key
    }

    /// Verifies the token for a subscription (RFC 8292 §2, §4.2).
    func verify(for subscription: BrowserSubscription, at now: Timestamp) throws(WebPushRejection) {
        guard key == subscription.serverKey else {
            throw WebPushRejection(.keyMismatch, "the parameter k is not the key that the page subscribed with")
        }
        guard token.algorithm == "ES256" else { throw Self.invalid("its alg is not ES256") }
        guard token.signature.count == 64, let publicKey = try? P256.Signing.PublicKey(x963Representation: key),
            let signature = try? P256.Signing.ECDSASignature(rawRepresentation: token.signature),
            publicKey.isValidSignature(signature, for: token.signedBytes)
        else { throw Self.invalid("its signature was not made by the key k") }
        guard token.claims["aud"]?.string == subscription.origin else {
            throw Self.invalid("its aud is not \(subscription.origin)")
        }
        guard let expiry = token.claims["exp"]?.number else { throw Self.invalid("its exp is not Unix seconds") }
        let lifetime = expiry - Double(now.seconds)
        guard lifetime > 0 else { throw Self.invalid("it expired") }
        guard lifetime <= Self.maximumLifetime else {
            throw Self.invalid("its exp is more than 24 hours ahead")
        }
        guard let subject = token.claims["sub"]?.string, subject.hasPrefix("mailto:") || subject.hasPrefix("https://")
        else { throw Self.invalid("its sub is no mailto: or https: URI, which Apple requires") }
    }

    private static func invalid(_ problem: String) -> WebPushRejection {
        WebPushRejection(.badToken, "the VAPID token is not accepted: \(problem)")
    }
}

extension Substring {
    fileprivate var trimmed: Substring { trimmed(" ") }

    fileprivate func trimmed(_ character: Character) -> Substring {
        var text = drop { $0 == character }
        while text.last == character { text.removeLast() }
        return text
    }
}

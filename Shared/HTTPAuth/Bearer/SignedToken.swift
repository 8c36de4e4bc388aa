import FoundationEssentials
import PushProtocol

/// A parsed JWT in compact form (RFC 7515 §3.1), not yet verified.
struct SignedToken: Sendable {
    /// The maximum size in bytes. An ES256 token has about 300 bytes, one with many group claims a few thousand.
    static let maximumSize = 16_384

    /// The header's `alg`. It only selects among keys, each of which has one algorithm.
    let algorithm: String
    /// The header's `kid`.
    let keyID: String?
    /// The signed bytes: header and claims as received.
    let signedBytes: [UInt8]
    let signature: [UInt8]
    private let payload: [UInt8]

    init(_ text: String) throws(BearerTokenError) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard text.utf8.count <= Self.maximumSize, parts.count == 3,
            let header = [UInt8](base64URL: parts[0]), let payload = [UInt8](base64URL: parts[1]),
            let signature = [UInt8](base64URL: parts[2]),
            let members = try? WireCoding.decode(JSONValue.self, from: header, maximumSize: 4096),
            let algorithm = members["alg"]?.string
        else { throw BearerTokenError(.malformed) }
        // A recipient must reject extensions that it does not support (RFC 7515 §4.1.11).
        guard members["crit"] == nil else { throw BearerTokenError(.unknownExtension) }
        self.algorithm = algorithm
        keyID = members["kid"]?.string
        signedBytes = Array("\(parts[0]).\(parts[1])".utf8)
        self.signature = signature
        self.payload = payload
    }

    /// Returns the claims. Not trustworthy before the signature is verified.
    func claims() throws(BearerTokenError) -> JSONValue {
        guard let claims = try? WireCoding.decode(JSONValue.self, from: payload), claims.object != nil else {
            throw BearerTokenError(.malformed)
        }
        return claims
    }
}

extension [UInt8] {
    /// Decodes base64url without padding (RFC 7515 §2).
    package init?(base64URL text: some StringProtocol) {
        guard !text.utf8.contains(where: { "+/=".utf8.contains($0) }) else { return nil }
        var base64 = String(text).replacing("-", with: "+").replacing("_", with: "/")
        base64 += String(repeating: "=", count: (4 - base64.count % 4) % 4)
        guard let data = Data(base64Encoded: base64) else { return nil }
        self.init(data)
    }
}

import FoundationEssentials
import PushProtocol

/// A JWT in compact form (RFC 7515 §3.1), taken apart and not yet believed.
struct SignedToken: Sendable {
    /// In bytes. An ES256 token has some 300, one that names all groups of a user a few thousand.
    static let maximumSize = 16_384

    /// The algorithm that the token names. It only chooses among keys that are bound to one.
    let algorithm: String
    /// The key that the token names.
    let keyID: String?
    /// What is signed: header and claims, as they came.
    let signedBytes: [UInt8]
    let signature: [UInt8]
    private let payload: [UInt8]

    init(_ text: String) throws(BearerRefusal) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard text.utf8.count <= Self.maximumSize, parts.count == 3,
            let header = [UInt8](base64URL: parts[0]), let payload = [UInt8](base64URL: parts[1]),
            let signature = [UInt8](base64URL: parts[2]),
            let members = try? WireCoding.decode(JSONValue.self, from: header, maximumSize: 4096),
            let algorithm = members["alg"]?.string
        else { throw BearerRefusal(.malformed) }
        // Who does not understand what must be understood has to refuse (RFC 7515 §4.1.11).
        guard members["crit"] == nil else { throw BearerRefusal(.unknownExtension) }
        self.algorithm = algorithm
        keyID = members["kid"]?.string
        signedBytes = Array("\(parts[0]).\(parts[1])".utf8)
        self.signature = signature
        self.payload = payload
    }

    /// What the token says; of use only once its signature is verified.
    func claims() throws(BearerRefusal) -> JSONValue {
        guard let claims = try? WireCoding.decode(JSONValue.self, from: payload), claims.object != nil else {
            throw BearerRefusal(.malformed)
        }
        return claims
    }
}

extension [UInt8] {
    /// Base64url without padding (RFC 7515 §2).
    init?(base64URL text: some StringProtocol) {
        guard !text.utf8.contains(where: { "+/=".utf8.contains($0) }) else { return nil }
        var base64 = String(text).replacing("-", with: "+").replacing("_", with: "/")
        base64 += String(repeating: "=", count: (4 - base64.count % 4) % 4)
        guard let data = Data(base64Encoded: base64) else { return nil }
        self.init(data)
    }
}

import PushProtocol

/// A JSON Web Token taken apart (RFC 7519, compact serialization) and nothing more: what it says is not yet believed.
///
/// The simulator verifies with swift-crypto and these few lines, not with the library that the senders sign with, so
/// that an error in one of the two shows.
struct CompactJWT: Sendable {
    let header: JSONValue
    let claims: JSONValue
    /// What the signature is over: the first two parts as they were sent.
    let signedBytes: [UInt8]
    let signature: [UInt8]

    /// `nil` unless it is three base64url parts, the first two of them JSON objects.
    init?(_ text: some StringProtocol) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let header = Self.object(parts[0]), let claims = Self.object(parts[1]),
            let signature = Base64URL.bytes(of: parts[2])
        else { return nil }
        self.header = header
        self.claims = claims
        self.signature = signature
        signedBytes = Array(parts[0].utf8) + [UInt8(ascii: ".")] + Array(parts[1].utf8)
    }

    var algorithm: String? { header["alg"]?.string }
    var keyID: String? { header["kid"]?.string }

    private static func object(_ part: some StringProtocol) -> JSONValue? {
        guard let bytes = Base64URL.bytes(of: part), let value = try? JSONReader.value(of: bytes), value.object != nil
        else { return nil }
        return value
    }
}

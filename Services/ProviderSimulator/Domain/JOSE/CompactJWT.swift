import PushProtocol

/// A parsed JSON Web Token in compact serialization (RFC 7519), not verified.
///
/// Uses swift-crypto instead of the senders' JWT library, so that a bug in one of them shows.
struct CompactJWT: Sendable {
    let header: JSONValue
    let claims: JSONValue
    /// The signing input: the first two parts as received.
    let signedBytes: [UInt8]
    let signature: [UInt8]

    /// `nil` unless there are three base64url parts and the first two are JSON objects.
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
        guard let bytes = Base64URL.bytes(of: part), let value = try? ProviderJSON.value(of: bytes), value.object != nil
        else { return nil }
        return value
    }
}

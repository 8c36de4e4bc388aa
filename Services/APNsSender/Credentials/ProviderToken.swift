import FoundationEssentials
import PushProtocol
import PushSending

/// Mints the provider tokens of one signing key (`push-protocols` A.8): ES256, and the claims `iss` and `iat` alone.
///
/// APNs refuses a token that is older than an hour, and a key that signs more than one in twenty minutes. So there is one
/// for everybody who sends with the key, and it is renewed at fifty minutes.
struct ProviderToken: Hashable, Sendable {
    let keyID: String
    let teamID: String
    /// PKCS#8 PEM (`.p8`); read at each minting, so that a rotated key is taken up with the next token.
    let keyFile: String

    static let lifetime = Duration.seconds(50 * 60)

    /// The one source for all who send with this key.
    func source(clock: SenderClock) -> CredentialCache {
        CredentialCache(clock: clock) { () throws(CredentialError) in
            let token = try await mint(at: clock.now())
            return MintedCredential(
                authorization: "bearer \(token)", renewAfter: Self.lifetime, usableFor: Self.lifetime)
        }
    }

    func mint(at now: Timestamp) async throws(CredentialError) -> String {
        guard let pem = try? String(contentsOfFile: keyFile, encoding: .utf8) else {
            throw .refused(reason: "\(keyFile): the signing key cannot be read; check the file and its permissions")
        }
        do {
            return try await APNsProviderToken.sign(pem: pem, keyID: keyID, teamID: teamID, issuedAt: now)
        } catch {
            // The error is not passed on: nothing that has seen the key's text may reach a log.
            throw .refused(reason: "\(keyFile): is not an ES256 signing key (PKCS#8 PEM, as downloaded from Apple)")
        }
    }
}

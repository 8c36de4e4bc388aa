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
    /// PKCS#8 PEM (`.p8`).
    let keyFile: String

    static let lifetime = Duration.seconds(50 * 60)

    /// The key's file: contents are of use when they sign.
    func file(clock: SenderClock, files: FileAccess = .system) -> CredentialFile<String> {
        CredentialFile(path: keyFile, files: files) { contents throws(CredentialError) in
            let pem = String(decoding: contents, as: UTF8.self)
            _ = try await sign(with: pem, at: clock.now())
            return pem
        }
    }

    /// The one source for all who send with this key: signs with what is in force of `file`.
    func source(_ file: CredentialFile<String>, clock: SenderClock) -> CredentialCache {
        CredentialCache(clock: clock) { () throws(CredentialError) in
            let now = clock.now()
            let token = try await sign(with: try file.value(), at: now)
            return MintedCredential(
                authorization: "bearer \(token)", renewAfter: Self.lifetime, usableFor: Self.lifetime, issuedAt: now)
        }
    }

    func sign(with pem: String, at now: Timestamp) async throws(CredentialError) -> String {
        do {
            return try await APNsProviderToken.sign(pem: pem, keyID: keyID, teamID: teamID, issuedAt: now)
        } catch {
            // The error is not passed on: nothing that has seen the key's text may reach a log.
            throw .refused(reason: "\(keyFile): is not an ES256 signing key (PKCS#8 PEM, as downloaded from Apple)")
        }
    }
}

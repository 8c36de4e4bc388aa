import FoundationEssentials
import PushProtocol
import PushSending

/// Signs provider tokens with one APNs key: ES256 JWTs with the claims `iss` and `iat` (Apple: Establishing a
/// token-based connection to APNs).
///
/// APNs rejects tokens older than 60 minutes and keys that sign more than one token in 20 minutes. One token
/// therefore serves all senders of the key, and is renewed after 50 minutes.
struct ProviderTokenSigner: Hashable, Sendable {
    let keyID: String
    let teamID: String
    /// PKCS#8 PEM (`.p8`).
    let keyFile: String

    static let lifetime = Duration.seconds(50 * 60)

    /// The key file. Its contents are valid if they can sign.
    func file(clock: SenderClock, files: FileAccess = .system) -> CredentialFile<String> {
        CredentialFile(path: keyFile, files: files) { contents throws(CredentialError) in
            let pem = String(decoding: contents, as: UTF8.self)
            _ = try await sign(with: pem, at: clock.now())
            return pem
        }
    }

    /// The token source for the key, shared by all its users. Signs with the current contents of `file`.
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
            // Does not include the error, which could contain key material.
            throw .refused(reason: "\(keyFile): is not an ES256 signing key (PKCS#8 PEM, as downloaded from Apple)")
        }
    }
}

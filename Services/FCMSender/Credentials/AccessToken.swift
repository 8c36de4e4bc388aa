import PushProtocol
import PushSending

/// Obtains the access tokens of one service account.
struct AccessToken: Sendable {
    /// `POST`s a form and gives back status and body.
    typealias Call = @Sendable (_ url: String, _ form: [UInt8]) async throws(CredentialError) -> (Int, [UInt8])

    /// Read at each grant, so that a rotated key is taken up with the next token.
    let keyFile: String
    /// Asked instead of the account's own `token_uri`.
    let tokenURL: String?
    let call: Call

    /// The one source for all who send with this account.
    func source(clock: SenderClock) -> CredentialCache {
        CredentialCache(clock: clock) { () throws(CredentialError) in
            let account = try ServiceAccount.load(path: keyFile)
            let form = try await OAuthGrant.form(for: account, now: clock.now())
            let (status, body) = try await call(tokenURL ?? account.tokenURI, form)
            return try OAuthGrant.credential(status: status, body: body)
        }
    }
}

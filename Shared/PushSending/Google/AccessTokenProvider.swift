/// Obtains access tokens for one service account.
package struct AccessTokenProvider: Sendable {
    /// `POST`s a form and returns status and body.
    package typealias TokenRequest =
        @Sendable (_ url: String, _ form: [UInt8]) async throws(CredentialError) -> (Int, [UInt8])

    /// Returns the account at each grant, so that the next token uses a rotated key.
    package typealias Account = @Sendable () throws(CredentialError) -> ServiceAccount

    /// The file named in errors.
    package let keyFile: String
    package let account: Account
    /// The project that the account has to belong to.
    package let project: String
    /// The token endpoint; `nil` for the account's `token_uri`.
    package let tokenURL: String?
    package let requestToken: TokenRequest

    package init(
        keyFile: String, project: String, tokenURL: String?, account: @escaping Account,
        requestToken: @escaping TokenRequest
    ) {
        self.keyFile = keyFile
        self.account = account
        self.project = project
        self.tokenURL = tokenURL
        self.requestToken = requestToken
    }

    /// The credential source of all gateways with this account.
    package func source(clock: SenderClock) -> CredentialCache {
        CredentialCache(clock: clock) { () throws(CredentialError) in
            let account = try account()
            guard account.projectID == project else {
                throw .refused(
                    reason: "\(keyFile): belongs to project \(account.projectID) now, not to \(project); "
                        + "restart to change")
            }
            let form = try await OAuthGrant.form(for: account, now: clock.now())
            let (status, body) = try await requestToken(tokenURL ?? account.tokenURI, form)
            return try OAuthGrant.credential(status: status, body: body)
        }
    }
}

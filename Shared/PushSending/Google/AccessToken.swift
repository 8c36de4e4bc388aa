import PushProtocol

/// Obtains the access tokens of one service account.
package struct AccessToken: Sendable {
    /// `POST`s a form and gives back status and body.
    package typealias Call = @Sendable (_ url: String, _ form: [UInt8]) async throws(CredentialError) -> (Int, [UInt8])

    /// The account to ask for at each grant, so that a rotated key is taken up with the next token.
    package typealias Account = @Sendable () throws(CredentialError) -> ServiceAccount

    /// Named in errors.
    package let keyFile: String
    package let account: Account
    /// Whose account it has to be: another project's tokens would be of no use on the way to this one.
    package let project: String
    /// Asked instead of the account's own `token_uri`.
    package let tokenURL: String?
    package let call: Call

    /// `tokenURL` is asked instead of the account's own `token_uri`; `account` instead of the file itself.
    package init(
        keyFile: String, project: String, tokenURL: String?, account: @escaping Account, call: @escaping Call
    ) {
        self.keyFile = keyFile
        self.account = account
        self.project = project
        self.tokenURL = tokenURL
        self.call = call
    }

    /// Reads the file at each grant.
    package init(keyFile: String, project: String, tokenURL: String?, call: @escaping Call) {
        self.init(
            keyFile: keyFile, project: project, tokenURL: tokenURL,
            account: { () throws(CredentialError) in try ServiceAccount.load(path: keyFile) }, call: call)
    }

    /// The one source for all who send with this account.
    package func source(clock: SenderClock) -> CredentialCache {
        CredentialCache(clock: clock) { () throws(CredentialError) in
            let account = try account()
            guard account.projectID == project else {
                throw .refused(
                    reason: "\(keyFile): is now an account of \(account.projectID), not of \(project); restart to move")
            }
            let form = try await OAuthGrant.form(for: account, now: clock.now())
            let (status, body) = try await call(tokenURL ?? account.tokenURI, form)
            return try OAuthGrant.credential(status: status, body: body)
        }
    }
}

package import PushProtocol

/// A provider credential: the value of the header `authorization`. Prints redacted.
package struct Credential: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// `bearer …`; `nil` with a client certificate. Never log it.
    package let authorization: String?
    /// The number of this credential at its source, so that concurrent refusals replace it once.
    package let generation: Int
    /// The uptime at minting.
    package let mintedAt: Duration

    package init(authorization: String?, generation: Int, mintedAt: Duration) {
        self.authorization = authorization
        self.generation = generation
        self.mintedAt = mintedAt
    }

    package var description: String { "‹redacted›" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

package struct MintedCredential: Sendable {
    package var authorization: String
    /// The age from which to mint a new one, while this one stays in use.
    package var renewAfter: Duration
    /// The age from which not to use it. Equals `renewAfter` if minting takes no time.
    package var usableFor: Duration
    /// The signed issue time, which the provider compares with its clock; `nil` if the provider tracks the age itself.
    package var issuedAt: Timestamp?

    package init(
        authorization: String, renewAfter: Duration, usableFor: Duration, issuedAt: Timestamp? = nil
    ) {
        self.authorization = authorization
        self.renewAfter = renewAfter
        self.usableFor = usableFor
        self.issuedAt = issuedAt
    }

    /// How far in the future the issue time may be. Larger than usual clock corrections.
    static let maxClockLead = Duration.seconds(60)

    /// Whether the issue time is in the future or too old, because the clock was corrected after minting.
    func isIssueTimeInvalid(at now: Timestamp) -> Bool {
        guard let issuedAt else { return false }
        let age = now - issuedAt
        return age < .zero - Self.maxClockLead || age >= usableFor
    }
}

/// Why no credential is available. Reasons name keys and files, never their contents.
package enum CredentialError: Error, Hashable, Sendable {
    /// The key or account is refused or unreadable. Needs an operator.
    case refused(reason: String)
    /// The issuer of credentials is unreachable.
    case unavailable(reason: String)

    var result: SendResult {
        switch self {
        case .refused(let reason): .halted(reason: reason)
        case .unavailable(let reason): .unreachable(reason: reason)
        }
    }
}

extension CredentialError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .refused(let reason), .unavailable(let reason): reason
        }
    }
}

/// The source of a gateway's credential. Safe for concurrent use.
package protocol CredentialSource: Sendable {
    /// The credential to use now. Waits only if none is usable.
    func current() async throws(CredentialError) -> Credential

    /// A credential newer than `refused`. Concurrent calls with the same one mint once.
    func replacing(_ refused: Credential) async throws(CredentialError) -> Credential
}

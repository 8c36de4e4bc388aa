package import PushProtocol

/// What proves to a provider who sends: the whole value of the header `authorization`. It prints redacted.
package struct Credential: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// `bearer …`. Never log it. Absent where the connection itself is the proof, by a client certificate.
    package let authorization: String?
    /// Counts the credentials of one source, so that many who were refused with the same one replace it once.
    package let generation: Int
    /// The uptime at which it was minted.
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

/// A freshly minted credential and how long it serves.
package struct MintedCredential: Sendable {
    package var authorization: String
    /// From this age on a new one is obtained while this one goes on serving.
    package var renewAfter: Duration
    /// From this age on it is of no use. Equal to `renewAfter` where a new one is at hand at once.
    package var usableFor: Duration
    /// The time of day that is signed into it as its beginning, which the provider compares with its own; `nil` where
    /// the provider counts its age itself.
    package var issuedAt: Timestamp?

    package init(
        authorization: String, renewAfter: Duration, usableFor: Duration, issuedAt: Timestamp? = nil
    ) {
        self.authorization = authorization
        self.renewAfter = renewAfter
        self.usableFor = usableFor
        self.issuedAt = issuedAt
    }

    /// How far into the future its beginning may lie: more than clocks are corrected in everyday use.
    static let greatestLead = Duration.seconds(60)

    /// Whether the time of day says that it is from the future, or too old: the clock was put right since it was minted.
    func isMisdated(at now: Timestamp) -> Bool {
        guard let issuedAt else { return false }
        let age = now - issuedAt
        return age < .zero - Self.greatestLead || age >= usableFor
    }
}

/// Why there is no credential. The texts name keys and files, never their contents.
package enum CredentialError: Error, Hashable, Sendable {
    /// The key or account is refused or unreadable: a person has to mend it.
    case refused(reason: String)
    /// Whoever issues credentials cannot be reached now.
    case unavailable(reason: String)

    var answer: GatewayAnswer {
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

/// Where a gateway gets its credential from; safe to ask from many tasks at once.
package protocol CredentialSource: Sendable {
    /// The credential to send with now. Waits only when none is usable.
    func current() async throws(CredentialError) -> Credential

    /// A credential other than `refused`: however many ask with the same one, a new one is minted once.
    func replacing(_ refused: Credential) async throws(CredentialError) -> Credential
}

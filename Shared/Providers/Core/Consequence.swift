package import PushProtocol

/// The reaction of a sender to one answer of a provider.
///
/// Each provider's codec maps every status and reason to exactly one consequence, by an exhaustive switch. No later
/// code looks at the reason.
package enum Consequence: Hashable, Sendable {
    /// The answer is final for this target.
    case settle(Outcome.Answer)
    /// The provider has a problem: send this target again, no sooner than `floor`.
    case backOff(floor: Duration, reason: String)
    /// As `backOff`, but about this target only. Other targets go on; giving up is an outcome.
    case throttle(floor: Duration, reason: String)
    /// The credential is stale: get a new one, reconnect, send once more. A second time halts the route.
    case reauthenticate(reason: String)
    /// The connection is unusable: reconnect and send once more. A second time is `otherwise`.
    case reconnect(reason: String, otherwise: AfterReconnect)
    /// The connection is unusable or closing: reconnect, and send this target again no sooner than `floor`.
    case reconnectAndBackOff(floor: Duration, reason: String)
    /// Our credential or configuration is wrong: the route stops and keeps its queue. Never about the token.
    case halt(reason: String)

    /// The provider rejects the key that it holds for a third party, such as the APNs key in Firebase. The target waits
    /// for a new key and counts no attempt. Never about the token or our own credential.
    case waitForThirdParty(reason: String)

    /// The reaction to the same answer on a new connection.
    package enum AfterReconnect: Hashable, Sendable {
        case halts
        case backsOff(floor: Duration)
    }
}

/// Why no request can be built for a target. The reason is a stable word, never a value from the push.
package struct LocalRejection: Error, Hashable, Sendable {
    package var reason: String
    /// Whether the token itself may be wrong.
    package var suspectToken: Bool

    package init(_ reason: String, suspectToken: Bool = false) {
        self.reason = reason
        self.suspectToken = suspectToken
    }

    package var answer: Outcome.Answer { .rejected(reason: reason, suspectToken: suspectToken) }
}

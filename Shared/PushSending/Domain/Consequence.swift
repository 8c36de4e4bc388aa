package import PushProtocol

/// What one answer of a provider means for the sender. Each sender's domain gives every status and reason exactly one
/// of these by an exhaustive switch (`push-protocols` A.9, B.7); nothing later looks at the reason again.
package enum Consequence: Hashable, Sendable {
    /// The provider has spoken about this target; the push to it is over.
    case settle(Outcome.Answer)
    /// The provider is in trouble: send this target again, no sooner than `floor`.
    case backOff(floor: Duration, reason: String)
    /// As `backOff`, but for this one target: its neighbours go on, and giving up is an outcome.
    case throttle(floor: Duration, reason: String)
    /// The credential is stale: obtain a new one, open a new connection, send once more; a second time halts the lane.
    case reauthenticate(reason: String)
    /// This connection is of no use: open a new one and send once more; a second time is `otherwise`.
    case reconnect(reason: String, otherwise: Persistence)
    /// The connection is of no use, or is going away: open a new one, and send this target again no sooner than `floor`.
    case leave(floor: Duration, reason: String)
    /// Our credentials or configuration are at fault: the lane stops and keeps its queue. Never about the token.
    case halt(reason: String)

    /// The key that the provider holds for another party is refused: this target waits for a new key, at no attempt's
    /// cost. Never about the token, nor about our credential.
    case waitForThirdParty(reason: String)

    /// What it means when a fresh connection did not help.
    package enum Persistence: Hashable, Sendable {
        case halts
        case backsOff(floor: Duration)
    }
}

/// What became of one target in this attempt, after every remedy that does not need waiting was tried.
package enum GatewayAnswer: Hashable, Sendable {
    case settled(Outcome.Answer)
    /// Again later, no sooner than `floor`: the provider is in trouble, or an answer got lost on the way.
    case backOff(floor: Duration, reason: String)
    /// Again later, no sooner than `floor`: this one target is refused for its rate.
    case throttled(floor: Duration, reason: String)
    /// Not sent, or refused for our own fault: nothing further may be sent on this lane until it is mended.
    case halted(reason: String)
    /// Refused for the key that the provider holds for another party; again when there is a new one.
    case thirdPartyHalted(reason: String)
    /// It never reaches the wire, whenever it is tried; that says nothing about the provider.
    case refusedHere(LocalRejection)
    /// Nothing is known of an answer for a reason of ours that passes, congestion or a stop; as silent about the provider.
    case deferred(reason: String)
    /// The provider cannot be reached; nothing was sent.
    case unreachable(reason: String)
    /// Nothing was sent, as the answer to another target made it pointless: whether it is now, the lane's gate knows.
    case withdrawn
    /// Nothing was sent: while it waited for a stream its time ran out, or its user lost the device.
    case withheld
}

/// Why a target never reaches the wire: a stable word, never a value from the push.
package struct LocalRejection: Error, Hashable, Sendable {
    package var reason: String
    /// Whether what is wrong may be the token itself.
    package var suspectToken: Bool

    package init(_ reason: String, suspectToken: Bool = false) {
        self.reason = reason
        self.suspectToken = suspectToken
    }

    package var answer: Outcome.Answer { .rejected(reason: reason, suspectToken: suspectToken) }
}

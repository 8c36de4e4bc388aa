package import Providers
package import PushProtocol

/// The result of one attempt for one target, after all retries that need no waiting.
package enum SendResult: Hashable, Sendable {
    case settled(Outcome.Answer)
    /// Retry no sooner than `floor`: the provider has a problem, or the answer was lost.
    case backOff(floor: Duration, reason: String)
    /// Retry no sooner than `floor`: the provider limits the rate of this target.
    case throttled(floor: Duration, reason: String)
    /// Not sent, or rejected for our credential or configuration. The route must stop until an operator repairs it.
    case halted(reason: String)
    /// The provider rejects the key that it holds for a third party. Retry with a new key.
    case thirdPartyAuthRejected(reason: String)
    /// The request cannot be built, now or later. Says nothing about the provider.
    case rejectedLocally(LocalRejection)
    /// No answer for a temporary reason of ours: congestion or shutdown. Says nothing about the provider.
    case deferred(reason: String)
    /// Not sent: the provider is unreachable.
    case unreachable(reason: String)
    /// Not sent: the answer to another target made it pointless. Ask the circuit breaker again.
    case withdrawn
    /// Not sent: the push expired or was revoked while the request waited for a stream.
    case withheld
}

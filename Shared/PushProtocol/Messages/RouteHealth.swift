package import FoundationEssentials

/// The health of a route (one app in one environment) as one sender process sees it.
///
/// Feedback uses it to weigh evidence: it relates rejected tokens to all answers, and trusts a rejection more while
/// the provider accepts other tokens.
package struct RouteHealth: Hashable, Sendable {
    /// The sender process, by an id drawn at its start.
    package var sender: UUID
    /// The start of the minute (UTC) that is reported.
    package var minute: Timestamp
    /// Targets accepted or rejected by the provider in that minute so far.
    package var answered: Int
    /// The provider's last acceptance; absent if it has accepted none from this process.
    package var acceptedAt: Timestamp?
    /// Present while the sender attributes many rejected tokens to the route rather than to the tokens
    /// (ProviderFacts.md §C.4). Encoded as `storm`.
    package var badTokenSpike: BadTokenSpike?

    package init(
        sender: UUID, minute: Timestamp, answered: Int, acceptedAt: Timestamp?, badTokenSpike: BadTokenSpike? = nil
    ) {
        self.sender = sender
        self.minute = minute
        self.answered = answered
        self.acceptedAt = acceptedAt
        self.badTokenSpike = badTokenSpike
    }

    /// A period in which a sender considers its route misconfigured. Evidence against tokens from this period does
    /// not count. Times are by the sender's clock, as those of its outcomes are.
    package struct BadTokenSpike: Hashable, Sendable {
        /// The start of the interval in which the spike was detected. Does not change while it lasts.
        package var since: Timestamp
        /// The latest time known to be part of the spike.
        package var until: Timestamp

        package init(since: Timestamp, until: Timestamp) {
            self.since = since
            self.until = until
        }
    }
}

extension Timestamp {
    /// The start of the minute (UTC) that contains this time.
    package var minute: Timestamp { rounded(downTo: .seconds(60)) }
}

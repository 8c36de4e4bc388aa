package import FoundationEssentials

/// How a lane (one app on one of a provider's environments) fares, as one sender process sees it.
///
/// It travels with the evidence that feedback weighs: a count of refused tokens becomes a share of what was sent, and a
/// suspicion is worth more while the provider takes others.
package struct LanePulse: Codable, Hashable, Sendable {
    /// The process that speaks; drawn once, when it starts.
    package var sender: UUID
    /// The first moment of the minute (UTC) that this speaks of.
    package var minute: Timestamp
    /// Targets that the provider took or refused in that minute until now.
    package var answered: Int
    /// When the provider last took one; absent while it has taken none from this process.
    package var acceptedAt: Timestamp?
    /// Present where the process takes the refusals of many tokens for the lane's fault (`push-protocols` C.4.3).
    package var storm: Storm?

    package init(sender: UUID, minute: Timestamp, answered: Int, acceptedAt: Timestamp?, storm: Storm? = nil) {
        self.sender = sender
        self.minute = minute
        self.answered = answered
        self.acceptedAt = acceptedAt
        self.storm = storm
    }

    /// While a sender doubts its lane, and what it reported against tokens in that time is worth nothing. Both moments
    /// are by the sender's clock, as those of its outcomes are.
    package struct Storm: Codable, Hashable, Sendable {
        /// The beginning of the time that it was noticed in; the same as long as it lasts.
        package var since: Timestamp
        /// Until when it has lasted at least.
        package var until: Timestamp

        package init(since: Timestamp, until: Timestamp) {
            self.since = since
            self.until = until
        }
    }
}

extension Timestamp {
    /// The first moment of the minute (UTC) that this one lies in.
    package var minute: Timestamp { rounded(downTo: .seconds(60)) }
}

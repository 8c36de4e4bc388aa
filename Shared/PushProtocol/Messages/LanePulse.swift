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

    package init(sender: UUID, minute: Timestamp, answered: Int, acceptedAt: Timestamp?) {
        self.sender = sender
        self.minute = minute
        self.answered = answered
        self.acceptedAt = acceptedAt
    }
}

extension Timestamp {
    /// The first moment of the minute (UTC) that this one lies in.
    package var minute: Timestamp {
        let offset = milliseconds % 60_000
        return Timestamp(milliseconds: milliseconds - (offset < 0 ? offset + 60_000 : offset))
    }
}

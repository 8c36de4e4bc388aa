/// Detects a channel that no longer confirms, which only a new channel repairs. Pure: time is an argument.
///
/// After the loss of a queue's leader, RabbitMQ can nack or ignore all publishes of one channel to that queue
/// (Shared/Messaging/BrokerFacts.md §1.5). A nack can also mean that a queue is full or has no majority. So each
/// detection doubles its limit until a confirm: a new channel publishes the unconfirmed messages again.
struct ConfirmWatch {
    struct Limits: Hashable, Sendable {
        var unconfirmed: Duration = .seconds(30)
        /// How long a destination may be nacked without a confirm.
        var nacked: Duration = .seconds(5)
        /// The highest value of both after doubling.
        var maximum: Duration = .seconds(300)
    }

    struct Destination: Hashable {
        let exchange: String
        let routingKey: String
    }

    private struct NackStreak {
        /// The first and last nack on this channel; nil before the first.
        var span: (first: ContinuousClock.Instant, last: ContinuousClock.Instant)?
        var limit: Duration
    }

    /// Nacks further apart do not belong to one streak.
    static let longestGap: Duration = .seconds(60)

    private let limits: Limits
    private var unconfirmedLimit: Duration
    private var streaks: [Destination: NackStreak] = [:]
    /// The destination whose nacks reached their limit on this channel.
    private var nackedDestination: Destination?

    init(_ limits: Limits) {
        self.limits = limits
        unconfirmedLimit = limits.unconfirmed
    }

    mutating func confirmed(_ message: AMQPMessage) {
        unconfirmedLimit = limits.unconfirmed
        if !streaks.isEmpty { streaks[message.destination] = nil }
    }

    mutating func nacked(_ message: AMQPMessage, now: ContinuousClock.Instant) {
        let destination = message.destination
        var streak = streaks[destination] ?? NackStreak(limit: limits.nacked)
        if let span = streak.span, now - span.last <= Self.longestGap {
            streak.span = (span.first, now)
        } else {
            streak.span = (now, now)
        }
        if let span = streak.span, span.last - span.first >= streak.limit {
            nackedDestination = destination
            streak.limit = min(streak.limit * 2, limits.maximum)
        }
        streaks[destination] = streak
    }

    /// The reason to open a new channel; nil while confirms arrive. Call ``channelClosed()`` afterwards.
    ///
    /// - Parameter oldest: When the oldest unconfirmed message was sent.
    mutating func reasonToReopen(oldest: ContinuousClock.Instant?, now: ContinuousClock.Instant) -> String? {
        if let nackedDestination {
            return "the broker only nacks messages to the exchange \(nackedDestination.exchange) with the routing key "
                + nackedDestination.routingKey
        }
        guard let oldest, now - oldest >= unconfirmedLimit else { return nil }
        let reason = "no confirm within \(unconfirmedLimit)"
        unconfirmedLimit = min(unconfirmedLimit * 2, limits.maximum)
        return reason
    }

    mutating func channelClosed() {
        nackedDestination = nil
        for destination in streaks.keys { streaks[destination]?.span = nil }
    }
}

extension AMQPMessage {
    fileprivate var destination: ConfirmWatch.Destination { .init(exchange: exchange, routingKey: routingKey) }
}

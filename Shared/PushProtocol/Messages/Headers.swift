/// The AMQP headers that every message of ours may carry. None begins with `x-`: those belong to the broker.
package enum HeaderName {
    /// All headers that stages write.
    package static let all = [
        attempt, firstSeen, exchange, routingKey, reason, detail, queue, service, failedAt, failedAlone, redelivered,
        traceparent,
    ]

    /// How often this message was tried, from 1; absent means 1.
    package static let attempt = "heliograph-attempt"
    /// Unix milliseconds of the first delivery.
    package static let firstSeen = "heliograph-first-seen"
    /// The exchange and routing key it was first published with, kept through every retry.
    package static let exchange = "heliograph-exchange"
    package static let routingKey = "heliograph-routing-key"
    /// On dead letters: the stable word for why, and the sentence for a person.
    package static let reason = "heliograph-reason"
    package static let detail = "heliograph-detail"
    /// On dead letters: the queue it was taken from, the service that gave up, and when (Unix milliseconds).
    package static let queue = "heliograph-queue"
    package static let service = "heliograph-service"
    package static let failedAt = "heliograph-failed-at"
    /// On a copy in a retry level: its handler failed about it when it was alone, so it is handled alone again.
    package static let failedAlone = "heliograph-failed-alone"
    /// On a copy in a retry level: the broker had delivered it before, which it does not know of the copy.
    package static let redelivered = "heliograph-redelivered"
    /// On a dead letter that another stage wrote: the routing key it came under. `pushctl dead` sets it on the copy it keeps.
    package static let foreignKey = "heliograph-foreign-key"
    /// W3C Trace Context, text form.
    package static let traceparent = "traceparent"
}

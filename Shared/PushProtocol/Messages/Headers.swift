/// AMQP headers of this project's messages. None begins with `x-`, which RabbitMQ reserves.
package enum HeaderName {
    /// The headers that stages write.
    package static let all = [
        attempt, firstSeen, exchange, routingKey, reason, detail, queue, service, failedAt, failedAlone, redelivered,
        arrived, traceparent, tracestate, traceLinks,
    ]

    /// The delivery attempt, from 1; absent means 1.
    package static let attempt = "heliograph-attempt"
    /// Unix milliseconds of the first delivery.
    package static let firstSeen = "heliograph-first-seen"
    /// The message's first exchange and routing key, kept through every retry.
    package static let exchange = "heliograph-exchange"
    package static let routingKey = "heliograph-routing-key"
    /// On dead letters: a stable reason code, and a sentence for people.
    package static let reason = "heliograph-reason"
    package static let detail = "heliograph-detail"
    /// On dead letters: the queue, the service, and the time (Unix milliseconds).
    package static let queue = "heliograph-queue"
    package static let service = "heliograph-service"
    package static let failedAt = "heliograph-failed-at"
    /// On retries: the handler failed for this message alone, so it is handled alone again.
    package static let failedAlone = "heliograph-failed-alone"
    /// On retries: the broker had redelivered the message. The republished message lacks that flag.
    package static let redelivered = "heliograph-redelivered"
    /// On a dead letter of another stage: its original routing key. `pushctl dead` sets it when it keeps the message.
    package static let foreignRoutingKey = "heliograph-foreign-key"
    /// On events, notifications and pushes: when the event arrived, or when a waiting notification was due (Unix
    /// milliseconds). Metrics of the delay use it, and nothing else. Absent on messages of campaigns.
    package static let arrived = "heliograph-arrived"
    /// W3C Trace Context, text form.
    package static let traceparent = "traceparent"
    package static let tracestate = "tracestate"
    /// The `traceparent`s of further causes, separated by commas: of the other pushes whose outcomes a message has.
    package static let traceLinks = "heliograph-trace-links"
}

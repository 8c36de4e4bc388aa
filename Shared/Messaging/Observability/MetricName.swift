/// What a stage measures: the contract that dashboards and alerts rely on.
///
/// | name | kind | labels | counts |
/// |---|---|---|---|
/// | `heliograph_messages_consumed_total` | counter | stage, queue | deliveries handed to a batch |
/// | `heliograph_messages_settled_total` | counter | stage, queue, disposition | messages acknowledged |
/// | `heliograph_messages_published_total` | counter | stage, exchange, result | the broker's answers: confirmed, nacked, returned |
/// | `heliograph_messages_retried_total` | counter | stage, queue, level, reason | copies that wait in a retry level |
/// | `heliograph_messages_dead_lettered_total` | counter | stage, queue, reason | copies kept for a person |
/// | `heliograph_messages_discarded_total` | counter | stage, queue, reason | messages rightly of no consequence |
/// | `heliograph_messages_given_back_total` | counter | stage, queue | unsettled, requeued by a pause, a shutdown or a long outage |
/// | `heliograph_messages_in_flight` | gauge | stage, queue | messages being handled, published or held |
/// | `heliograph_batch_messages` | recorder | stage, queue | messages in a batch |
/// | `heliograph_handle_seconds` | timer | stage, queue, answer | the handler's time for a batch: decided, outage, failed |
/// | `heliograph_outage` | gauge | stage, queue | 1 while batches are held because a dependency is away |
///
/// Every label is bounded: stages and exchanges are fixed, queues follow from the configured apps, reasons are the
/// stable words of `Reason.code`.
enum MetricName {
    static let consumed = "heliograph_messages_consumed_total"
    static let settled = "heliograph_messages_settled_total"
    static let published = "heliograph_messages_published_total"
    static let retried = "heliograph_messages_retried_total"
    static let deadLettered = "heliograph_messages_dead_lettered_total"
    static let discarded = "heliograph_messages_discarded_total"
    static let givenBack = "heliograph_messages_given_back_total"
    static let inFlight = "heliograph_messages_in_flight"
    static let batchSize = "heliograph_batch_messages"
    static let handleDuration = "heliograph_handle_seconds"
    static let outage = "heliograph_outage"
}

/// The labels of those metrics.
enum MetricLabel {
    static let stage = "stage"
    static let queue = "queue"
    static let exchange = "exchange"
    static let disposition = "disposition"
    static let reason = "reason"
    static let result = "result"
    static let level = "level"
    static let answer = "answer"
}

/// The metrics of a stage, used by dashboards and alerts.
///
/// Every label is bounded: stages and exchanges are fixed, queues follow from the configured apps, and reasons are
/// values of `Reason.code`.
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
    static let queueAge = "heliograph_queue_age_seconds"
    static let outage = "heliograph_outage"
}

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

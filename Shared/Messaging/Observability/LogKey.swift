/// The log keys of this module. Bodies, tokens and header values are never logged.
enum LogKey {
    static let stage = "stage"
    static let queue = "queue"
    static let stream = "stream"
    static let exchange = "exchange"
    static let routingKey = "routing_key"
    static let messageID = "message_id"
    static let correlation = "correlation"
    static let causation = "causation"
    static let notifications = "notifications"
    static let traceID = "trace_id"
    static let attempt = "attempt"
    static let reason = "reason"
    static let detail = "detail"
    static let reply = "reply"
    static let count = "count"
    static let error = "error"
}

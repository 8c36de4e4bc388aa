import Metrics
import PushProtocol

/// Records how late a worker's rows are, from its own query for due rows. The query begins with the oldest.
enum DueAge: String {
    /// Held, scheduled and summary notifications.
    case held
    /// Digest buckets.
    case digest

    func record(oldest dueAt: Timestamp?, now: Timestamp) {
        let age = dueAt.map { max(.zero, now - $0) } ?? .zero
        Gauge(label: "heliograph_rules_due_age_seconds", dimensions: [("work", rawValue)]).record(age / .seconds(1))
    }
}

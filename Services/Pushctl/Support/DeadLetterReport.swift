import Messaging
import PushProtocol

/// Formats dead letters.
enum DeadLetterReport {
    /// `2026-03-31T09:00:00Z  8 attempts  provider-unavailable  family-portal.chat  event e-1  message 6f1f…: why`
    static func line(_ letter: DeadLetter) -> String {
        var parts: [String] = []
        if let failedAt = letter.failedAt { parts.append(RFC3339.seconds(from: failedAt.date)) }
        if let attempt = letter.attempt { parts.append(attempt == 1 ? "1 attempt" : "\(attempt) attempts") }
        parts.append(letter.reason)
        if let foreignRoutingKey = letter.foreignRoutingKey {
            parts.append("written by another stage, as \(foreignRoutingKey)")
        }
        if let routingKey = letter.routingKey { parts.append(routingKey) }
        if let correlation = letter.correlation { parts.append("event \(correlation)") }
        parts.append("message \(letter.id ?? "without an id")")
        let line = parts.joined(separator: "  ")
        return letter.detail.map { "\(line): \($0)" } ?? line
    }
}

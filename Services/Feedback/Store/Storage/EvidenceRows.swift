import FoundationEssentials
import Postgres
import PushProtocol

extension Evidence {
    /// Decodes a row of `feedback.evidence` with the additional column `suspicions`.
    init(_ row: PostgresRow) throws(PostgresError) {
        func moment(_ column: String) throws(PostgresError) -> Timestamp? {
            try row.decode(Date?.self, at: column).map(Timestamp.init)
        }
        key = Key(
            notification: try row.decode(UUID.self, at: "notification_id"),
            device: try row.decode(UUID.self, at: "device_id"))
        route = try FeedbackRoute(row)
        guard let verdict = TokenStatement.Verdict(rawValue: try row.decode(String.self, at: "finding")) else {
            throw PostgresError(column: "finding", expected: "a known finding")
        }
        self.verdict = verdict
        reason = try row.decode(String.self, at: "reason")
        goneSince = try moment("gone_since")
        registeredAt = try moment("registered_at")
        observedAt = Timestamp(try row.decode(Date.self, at: "observed_at"))
        suspicions = Int(try row.decode(Int64.self, at: "suspicions"))
        // Rows of older releases have no cause; the notification replaces it.
        let cause = try row.decode(UUID?.self, at: "cause") ?? key.notification
        trace = Trace(
            id: cause, correlation: try row.decode(String?.self, at: "correlation") ?? "",
            causation: cause.uuidString.lowercased(), traceparent: try row.decode(String?.self, at: "traceparent"))
    }
}

extension FeedbackRoute {
    /// Decodes the columns `app`, `provider` and `environment`.
    init(_ row: PostgresRow) throws(PostgresError) {
        guard let app = AppID(rawValue: try row.decode(String.self, at: "app")) else {
            throw PostgresError(column: "app", expected: "an app's id")
        }
        guard let origin = Outcomes.Origin(rawValue: try row.decode(String.self, at: "provider")) else {
            throw PostgresError(column: "provider", expected: "a provider")
        }
        self.init(
            app: app, origin: origin,
            environment: try row.decode(String?.self, at: "environment").flatMap { ProviderEnvironment(rawValue: $0) })
    }
}

extension PostgresError {
    /// A stored value that this release cannot decode.
    fileprivate init(column: String, expected: String) {
        self.init(.decoding, operation: "feedback.evidence", detail: "column “\(column)”: expected \(expected)")
    }
}

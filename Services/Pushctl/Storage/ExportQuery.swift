import Postgres
import PushProtocol

/// What `devices export` asks the database, which writes the lines itself.
struct ExportQuery: Hashable, Sendable {
    let format: DeviceFormat
    /// Whether tokens are written as they are; otherwise, masked, in a column that no import takes.
    let withTokens: Bool

    /// Copies out every active registration of an app, or of all, in one snapshot.
    ///
    /// - Returns: how many there are.
    func run(
        _ app: AppID?, in transaction: PostgresTransaction, to receive: ([UInt8]) async throws -> Void
    ) async throws -> Int {
        try await transaction.execute("SELECT set_config('heliograph.export', \(app?.rawValue ?? ""), true)")
        return try await transaction.copy(app == nil ? lines("") : lines(Self.ofApp), as: options, to: receive)
    }

    private static let ofApp: SQL = "AND r.app = current_setting('heliograph.export')"

    private var options: SQL {
        switch format {
        case .csv: "FORMAT csv, HEADER"
        // A column that is written without quotes and escapes, as JSON has neither of these two characters in it.
        case .ndjson: "FORMAT csv, DELIMITER E'\\x01', QUOTE E'\\x02'"
        }
    }

    private func lines(_ condition: SQL) -> SQL {
        let columns: SQL = """
            SELECT r.app, r.user_id AS "user",
                coalesce(r.kind, CASE r.provider WHEN 'apns' THEN 'alert' ELSE 'fcm-token' END) AS kind, r.provider,
                r.environment, \(token), r.installation, r.scope, r.topic, r.platform, r.locale, r.time_zone, r.app_version,
                to_char(r.registered_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS registered_at
            FROM registry.registration r WHERE r.state = 'active' \(condition)
            """
        return switch format {
        case .csv: columns
        case .ndjson: "SELECT json_strip_nulls(row_to_json(l)) FROM (\(columns)) AS l"
        }
    }

    private var token: SQL {
        withTokens ? "r.token" : "left(r.token, 4) || '… (' || length(r.token) || ' characters)' AS masked_token"
    }
}

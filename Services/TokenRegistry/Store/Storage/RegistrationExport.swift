package import Postgres
package import PushProtocol
package import TokenEncryption

/// Exports active registrations as lines of a file. The database formats the lines; ``ExportTokenDecryptor`` decrypts the tokens in them.
package struct RegistrationExport: Sendable {
    let format: DeviceFormat
    /// Whether tokens are written in clear text; otherwise masked, in a column that `import` does not accept.
    let withTokens: Bool
    /// `nil` without a key file.
    let cipher: TokenCipher?

    package init(format: DeviceFormat, withTokens: Bool, cipher: TokenCipher? = nil) {
        self.format = format
        self.withTokens = withTokens
        self.cipher = cipher
    }

    /// Exports the active registrations of an app, or of all, from one snapshot.
    ///
    /// - Returns: the number of registrations, and of tokens that could not be decrypted and are empty.
    package func run(
        _ app: AppID?, in transaction: PostgresTransaction, to receive: ([UInt8]) async throws -> Void
    ) async throws -> (count: Int, unreadable: Int) {
        var tokens = ExportTokenDecryptor(cipher, format: format, withTokens: withTokens)
        // COPY takes no parameters, so they are set as session settings.
        try await transaction.execute(
            """
            SELECT set_config('heliograph.export', \(app?.rawValue ?? ""), true),
                set_config('heliograph.marker', \(tokens.marker), true),
                set_config('heliograph.sealed', \(TokenCipher.prefix()), true)
            """)
        let count = try await transaction.copy(app == nil ? lines("") : lines(Self.ofApp), as: options) {
            try await receive(try tokens.decryptTokens(in: $0))
        }
        return (count, tokens.unreadable)
    }

    private static let ofApp: SQL = "AND r.app = current_setting('heliograph.export')"

    private var options: SQL {
        switch format {
        case .csv: "FORMAT csv, HEADER"
        // A single column without quoting: JSON never contains these two characters unescaped.
        case .ndjson: "FORMAT csv, DELIMITER E'\\x01', QUOTE E'\\x02'"
        }
    }

    private func lines(_ condition: SQL) -> SQL {
        let columns: SQL = """
            SELECT r.app, r.user_id AS "user",
                coalesce(r.kind, CASE r.provider WHEN 'apns' THEN 'alert' WHEN 'webpush' THEN 'web-push'
                    ELSE 'fcm-token' END) AS kind, r.provider,
                r.environment, \(token), r.installation, r.scope, r.topic, r.platform, r.locale, r.time_zone, r.app_version,
                to_char(r.registered_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS registered_at
            FROM registry.registration r WHERE r.state = 'active' \(condition)
            """
        return switch format {
        case .csv: columns
        case .ndjson: "SELECT json_strip_nulls(row_to_json(l)) FROM (\(columns)) AS l"
        }
    }

    /// Like ``TokenCipher/isSealed(_:)``.
    private static let isSealed: SQL = "starts_with(r.token, current_setting('heliograph.sealed'))"

    /// Contains no character that CSV or JSON escapes.
    private static let marked: SQL = """
        current_setting('heliograph.marker') || r.device_id || ' ' || r.app || ' ' || r.token
            || current_setting('heliograph.marker')
        """

    private var token: SQL {
        withTokens
            ? "CASE WHEN \(Self.isSealed) THEN \(Self.marked) ELSE r.token END AS token"
            : """
            CASE WHEN \(Self.isSealed) THEN \(Self.marked)
                ELSE left(r.token, 4) || '… (' || length(r.token) || ' characters)' END AS masked_token
            """
    }
}

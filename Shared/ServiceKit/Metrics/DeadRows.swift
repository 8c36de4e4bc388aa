package import Logging
internal import Messaging
internal import Metrics

/// Rows that a poller cannot handle. The poller marks each in the columns `dead_at` and `dead_reason` and goes on with the
/// others. `pushctl dead-rows` lists, retries and drops them.
package enum DeadRows {
    /// | name | kind | labels | counts |
    /// |---|---|---|---|
    /// | `heliograph_rows_dead_lettered_total` | counter | table, reason | rows and cursors that were set aside |
    package static func count(in table: String, because reason: String) {
        Counter(
            label: "heliograph_rows_dead_lettered_total", dimensions: [("table", table), ("reason", reason)]
        ).increment()
    }

    /// Counts a row and logs one line. The line names the row and holds nothing of its content.
    ///
    /// - Parameters:
    ///   - table: With its schema, as in `registry.outbox`.
    ///   - key: The row's primary key.
    ///   - detail: Where the fault is; without the value.
    package static func tell(
        _ key: String, of app: String?, in table: String, because reason: String, detail: String, logger: Logger
    ) {
        count(in: table, because: reason)
        logger.warning(
            "A row cannot be handled and was set aside; see `pushctl dead-rows list`",
            metadata: [
                "table": "\(table)", LogKey.app: "\(app ?? "unknown")", "key": "\(key)", LogKey.reason: "\(reason)",
                LogKey.error: "\(detail)",
            ])
    }
}

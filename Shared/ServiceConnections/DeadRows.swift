package import Logging
internal import Metrics
import ServiceKit

/// Rows that a poller cannot process. The poller sets their columns `dead_at` and `dead_reason` and continues with
/// other rows. `pushctl dead-rows` lists, retries and drops them.
package enum DeadRows {
    package static func count(in table: String, because reason: String) {
        Counter(
            label: "heliograph_rows_dead_lettered_total", dimensions: [("table", table), ("reason", reason)]
        ).increment()
    }

    /// Counts a dead row and logs its key, without its content.
    ///
    /// - Parameters:
    ///   - table: the table with its schema, such as `registry.outbox`.
    ///   - key: the row's primary key.
    ///   - detail: the location of the fault, without the value.
    package static func report(
        _ key: String, of app: String?, in table: String, because reason: String, detail: String, logger: Logger
    ) {
        count(in: table, because: reason)
        logger.warning(
            "Row cannot be processed and was marked as dead; see `pushctl dead-rows list`",
            metadata: [
                LogKey.table: "\(table)", LogKey.app: "\(app ?? "-")", LogKey.row: "\(key)", LogKey.reason: "\(reason)",
                LogKey.error: "\(detail)",
            ])
    }
}

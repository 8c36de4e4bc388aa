package import Logging
import Messaging
import Postgres
import ServiceConnections
import ServiceKit

/// Runs a step of a table walk and isolates a row that fails it.
enum WalkStep {
    /// Runs a step of at most `most` rows. Halves the step after a failure that one row may have caused. Skips a row
    /// that fails alone until the next walk.
    ///
    /// - Parameter make: receives the number of rows, and whether to skip them.
    static func halving<R>(
        _ most: Int, in table: String, _ logger: Logger, _ make: (_ rows: Int, _ passes: Bool) async throws -> R
    ) async throws -> R {
        var rows = most
        while true {
            do { return try await make(rows, false) } catch let error as PostgresError where error.mayConcernOneRow {
                guard rows == 1 else {
                    rows /= 2
                    continue
                }
                tell(error, in: table, logger)
                return try await make(1, true)
            }
        }
    }

    static func tell(_ error: PostgresError, in table: String, _ logger: Logger) {
        DeadRows.count(in: table, because: ReasonCode.rowFailed)
        logger.warning(
            "Cannot process a row; skipping it until the next walk",
            metadata: [LogKey.table: "\(table)", LogKey.error: "\(error)"])
    }
}

extension Logger {
    /// The default logger of stores.
    package static var registry: Logger { Logger(label: "token-registry") }
}

extension PostgresError {
    /// Whether the statement may succeed without one of its rows.
    var mayConcernOneRow: Bool {
        guard case .sqlState(let state) = code else { return isTimeout }
        // Class 42: the statement or its permissions are wrong.
        return !isOutage && !isRetriableTransaction && !state.hasPrefix("42")
    }
}

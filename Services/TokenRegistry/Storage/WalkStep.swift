import Logging
import Messaging
import Postgres
import ServiceConnections
import ServiceKit

/// A step of a walk through a table, which one row may fail.
enum WalkStep {
    /// Makes a step of at most `most` rows. After a failure that may be one row's it makes a smaller one. It passes over a row
    /// that fails alone; the next walk tries the row again.
    ///
    /// - Parameter make: is given the number of rows, and whether to pass over them.
    static func halving<R>(
        _ most: Int, in table: String, _ logger: Logger, _ make: (_ rows: Int, _ passes: Bool) async throws -> R
    ) async throws -> R {
        var rows = most
        while true {
            do { return try await make(rows, false) } catch let error as PostgresError where error.mayBeOneRows {
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
            "A row cannot be handled and is passed over until the next walk",
            metadata: ["table": "\(table)", LogKey.error: "\(error)"])
    }
}

extension Logger {
    /// The default of stores.
    static var registry: Logger { Logger(label: "token-registry") }
}

extension PostgresError {
    /// Whether the statement may succeed without one of its rows.
    var mayBeOneRows: Bool {
        guard case .sqlState(let state) = code else { return isTimeout }
        // 42: the statement itself is wrong, or its rights are.
        return !isOutage && !isRetriableTransaction && !state.hasPrefix("42")
    }
}

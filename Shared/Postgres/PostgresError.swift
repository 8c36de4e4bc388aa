/// A database error. Contains no password and no parameter value.
package struct PostgresError: Error, Equatable, Sendable {
    package enum Code: Hashable, Sendable {
        case invalidConfiguration
        /// No connection could be opened: refused, unreachable, wrong password, no writable host.
        case connectionFailed
        /// An open connection broke. A running statement may have taken effect, unless it was in a transaction before
        /// `COMMIT`, which is rolled back.
        case connectionLost
        /// The server did not respond before the client's deadline; the connection was closed.
        case deadlineExceeded
        /// No connection of the pool became free in time.
        case checkoutTimedOut
        case poolClosed
        /// The task was cancelled. The connection of a running statement was closed.
        case cancelled
        /// The connection broke during `COMMIT`; the transaction may have taken effect. Repeat the work with the same
        /// dedupe key.
        case commitUnknown
        /// The body of a transaction returned after a statement had failed; nothing was committed.
        case transactionAborted
        /// A `PostgresTransaction` was used after its body had returned.
        case transactionEnded
        /// A statement was run during a COPY of its transaction.
        case copying
        /// A column is missing or has another type.
        case decoding
        /// A prepared statement is invalid because its tables were altered. The next run prepares it again.
        case statementOutdated
        /// An error of the server, by SQLSTATE (Postgres manual, appendix A).
        case sqlState(String)
    }

    package let code: Code
    /// The start of the statement (its text, never its values), or a step such as `connect`.
    package let operation: String
    package let detail: String

    /// - Parameter operation: the whole statement, or a step.
    package init(_ code: Code, operation: String, detail: String) {
        self.code = code
        self.operation = Self.label(operation)
        self.detail = detail
    }

    /// Returns the start of a statement on one line. Called only for errors, since it is slower than many statements.
    static func label(_ statement: String) -> String {
        let line = statement.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        return line.count > 80 ? line.prefix(79) + "…" : line
    }
}

extension PostgresError: CustomStringConvertible {
    package var description: String {
        switch code {
        case .sqlState(let state): "\(operation): \(detail) (SQLSTATE \(state))"
        default: "\(operation): \(detail)"
        }
    }
}

// MARK: - Consequences

extension PostgresError {
    /// Whether the database is unreachable, shutting down, out of resources, or read-only: retry without a limit.
    /// Includes `commitUnknown`, so the work must be safe to repeat.
    ///
    /// Excludes time-outs (``isTimeout``): the statement itself may be too slow, and a retry would time out again.
    package var isOutage: Bool {
        switch code {
        case .connectionFailed, .connectionLost, .checkoutTimedOut, .poolClosed, .commitUnknown: true
        case .sqlState(let state): Self.isOutage(sqlState: state)
        case .deadlineExceeded, .invalidConfiguration, .cancelled, .transactionAborted, .transactionEnded, .copying,
            .decoding,
            .statementOutdated:
            false
        }
    }

    /// Whether a statement or a wait for a lock timed out. Retry with a smaller batch; HTTP clients may retry later.
    package var isTimeout: Bool {
        switch code {
        case .deadlineExceeded, .sqlState("57014"), .sqlState("55P03"): true
        default: false
        }
    }

    /// Whether the server rolled the transaction back for a transient reason; its body may be retried.
    package var isRetriableTransaction: Bool {
        switch code {
        case .sqlState("40001"), .sqlState("40P01"), .statementOutdated: true
        default: false
        }
    }

    /// Whether the connection must be closed.
    var closesConnection: Bool {
        switch code {
        case .connectionFailed, .connectionLost, .deadlineExceeded, .commitUnknown: true
        // 25006: the server has become read-only; a new connection finds the writable one (`target_session_attrs`).
        case .sqlState(let state): state.hasPrefix("57P0") || state.hasPrefix("08") || state == "25006"
        default: false
        }
    }

    /// Whether the connection broke. A transaction before `COMMIT` has then certainly not taken effect.
    var isLostConnection: Bool {
        switch code {
        case .connectionLost: true
        case .sqlState(let state): state.hasPrefix("57P0") || state.hasPrefix("08")
        default: false
        }
    }

    private static func isOutage(sqlState: String) -> Bool {
        switch sqlState {
        // The server is read-only.
        case "25006": true
        default:
            // Connection exception; insufficient resources; shutdown; system error.
            ["08", "53", "57P0", "58"].contains { sqlState.hasPrefix($0) }
        }
    }
}

/// What went wrong between us and the database. Never holds a password nor a parameter's value.
package struct PostgresError: Error, Equatable, Sendable {
    package enum Code: Hashable, Sendable {
        /// The configuration cannot be used as it is.
        case invalidConfiguration
        /// No connection could be opened: refused, unreachable, wrong password, no writable host.
        case connectionFailed
        /// An open connection broke. Whether a statement in flight took effect is unknown, unless it was in a
        /// transaction that was not being committed: that one is rolled back.
        case connectionLost
        /// The server said nothing for longer than the client waits; the connection was thrown away.
        case deadlineExceeded
        /// No connection of the pool became free in time.
        case checkoutTimedOut
        case poolClosed
        /// The waiting task was cancelled. A statement in flight was abandoned with its connection.
        case cancelled
        /// The connection broke during `COMMIT`: the transaction took effect, or it did not. The way out is to do the
        /// work again under the same dedupe key, never to assume either.
        case commitUnknown
        /// The body of a transaction returned, although one of its statements had failed: nothing was committed.
        case transactionAborted
        /// A `PostgresTransaction` was used after its body had returned.
        case transactionEnded
        /// A statement was issued on a transaction that is in the middle of copying rows.
        case copying
        /// A column does not hold what was asked of it.
        case decoding
        /// A prepared statement no longer fits the tables it reads: they were altered since. Run again, it is prepared anew.
        case statementOutdated
        /// The server's answer, by its five-character code (Postgres manual, appendix A).
        case sqlState(String)
    }

    package let code: Code
    /// What was being done: the beginning of the statement (its text, never its values), or a step such as `connect`.
    package let operation: String
    package let detail: String

    /// - Parameter operation: The whole statement, or a step.
    package init(_ code: Code, operation: String, detail: String) {
        self.code = code
        self.operation = Self.label(operation)
        self.detail = detail
    }

    /// The beginning of a statement, on one line, to tell it by. Made when something has gone wrong, as it costs more than
    /// many a statement does.
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
    /// Nothing is wrong with the statement: the database is away, shutting down, out of resources, or refusing writes. The
    /// same may be tried again for as long as it takes. `commitUnknown` is one too: what follows it must be safe to repeat.
    ///
    /// A statement that ran out of time is none (``isTimeout``): it may be the statement's own doing, and would then run out
    /// of time for ever.
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

    /// A statement, or the wait for a lock, took longer than allowed. A smaller piece of the same work may succeed. An HTTP
    /// client may ask again later.
    package var isTimeout: Bool {
        switch code {
        case .deadlineExceeded, .sqlState("57014"), .sqlState("55P03"): true
        default: false
        }
    }

    /// The transaction was rolled back by the server for a reason that may be gone the next time: its whole body may
    /// be run again.
    package var isRetriableTransaction: Bool {
        switch code {
        case .sqlState("40001"), .sqlState("40P01"), .statementOutdated: true
        default: false
        }
    }

    /// The connection is of no more use.
    var closesConnection: Bool {
        switch code {
        case .connectionFailed, .connectionLost, .deadlineExceeded, .commitUnknown: true
        // 25006: this server is read-only now; `target_session_attrs` looks for the one that is not.
        case .sqlState(let state): state.hasPrefix("57P0") || state.hasPrefix("08") || state == "25006"
        default: false
        }
    }

    /// Before `COMMIT` was sent, a transaction whose connection broke has certainly not taken effect.
    var isLostConnection: Bool {
        switch code {
        case .connectionLost: true
        case .sqlState(let state): state.hasPrefix("57P0") || state.hasPrefix("08")
        default: false
        }
    }

    private static func isOutage(sqlState: String) -> Bool {
        switch sqlState {
        // Read-only server.
        case "25006": true
        default:
            // Connection; resources and disk; shutdown; the system's own I/O.
            ["08", "53", "57P0", "58"].contains { sqlState.hasPrefix($0) }
        }
    }
}

internal import CPostgres

/// How long to wait for an answer, and what may end the waiting.
struct Patience {
    let deadline: ContinuousClock.Instant
    let wakeUp: WakeUp
    /// Whether the cancellation of the current task ends it. `COMMIT` and `ROLLBACK` see themselves through.
    let endsWithTask: Bool
}

extension ConnectionHandle {
    /// Sends `request` and waits for the whole answer. Blocks, at most until the deadline.
    ///
    /// Throws `connectionLost`, `deadlineExceeded` or `cancelled` when the answer did not come; the connection is then
    /// in the middle of an exchange and must be closed.
    borrowing func exchange(
        _ request: Request, operation: String, patience: Patience
    ) throws(PostgresError) -> StatementResult {
        guard queue(request) else { throw lost(operation) }
        try flush(operation, patience)
        return try answer(to: request, operation: operation, patience: patience)
    }

    /// Waits for the rest of the answer.
    borrowing func answer(
        to request: Request, operation: String, patience: Patience
    ) throws(PostgresError) -> StatementResult {
        var answer: Result<StatementResult, PostgresError>?
        while let result = try nextResult(operation, patience) {
            guard !result.isCopying else {
                throw PostgresError(
                    .connectionLost, operation: operation, detail: "a COPY was begun where none was expected")
            }
            // The first error is the cause; what follows it, such as the loss of the connection, is its consequence.
            if case .failure = answer { continue }
            answer = result.outcome(operation: operation, request: request)
        }
        guard let answer else { throw lost(operation) }
        return try answer.get()
    }

    borrowing func flush(_ operation: String, _ patience: Patience) throws(PostgresError) {
        while true {
            switch PQflush(pointer) {
            case 0: return
            case 1:
                try wait(toWrite: true, operation, patience)
                // The server may be unable to read before we have read what it writes.
                guard PQconsumeInput(pointer) == 1 else { throw lost(operation) }
            default: throw lost(operation)
            }
        }
    }

    /// The next of the results of one request, or `nil` after the last.
    borrowing func nextResult(
        _ operation: String, _ patience: Patience
    ) throws(PostgresError) -> ResultHandle? {
        while PQisBusy(pointer) == 1 {
            try wait(toWrite: false, operation, patience)
            guard PQconsumeInput(pointer) == 1 else { break }
        }
        return PQgetResult(pointer).map { ResultHandle($0) }
    }

    borrowing func wait(toWrite: Bool, _ operation: String, _ patience: Patience) throws(PostgresError) {
        while true {
            if patience.endsWithTask, Task.isCancelled {
                throw PostgresError(.cancelled, operation: operation, detail: "the task was cancelled")
            }
            switch patience.wakeUp.wait(socket: socket, toWrite: toWrite, until: patience.deadline) {
            case .ready: return
            case .signalled: continue
            case .timedOut:
                throw PostgresError(
                    .deadlineExceeded, operation: operation,
                    detail: "the server did not answer in time; the connection was closed")
            }
        }
    }

    borrowing func lost(_ operation: String) -> PostgresError {
        PostgresError(.connectionLost, operation: operation, detail: lastMessage)
    }
}

internal import CPostgres

/// The deadline of a wait for the server, and the events that end it early.
struct WaitPolicy {
    let deadline: ContinuousClock.Instant
    let wakeUp: WakeUpPipe
    /// Whether the cancellation of the current task ends the wait. False for `COMMIT` and `ROLLBACK`.
    let endsWithTask: Bool
}

extension ConnectionHandle {
    /// Sends `request` and returns the complete result. Blocks, at most until the deadline.
    ///
    /// Throws `connectionLost`, `deadlineExceeded` or `cancelled` without a complete result. The connection is then in
    /// an undefined state and must be closed.
    borrowing func exchange(
        _ request: Request, operation: String, waitPolicy: WaitPolicy
    ) throws(PostgresError) -> StatementResult {
        guard queue(request) else { throw connectionLost(operation) }
        try flush(operation, waitPolicy)
        return try answer(to: request, operation: operation, waitPolicy: waitPolicy)
    }

    /// Waits for the remaining results of a request.
    borrowing func answer(
        to request: Request, operation: String, waitPolicy: WaitPolicy
    ) throws(PostgresError) -> StatementResult {
        var answer: Result<StatementResult, PostgresError>?
        while let result = try nextResult(operation, waitPolicy) {
            guard !result.isCopying else {
                throw PostgresError(
                    .connectionLost, operation: operation, detail: "the statement is a COPY; use `copy`")
            }
            // Keeps the first error. Later ones, such as a lost connection, are consequences.
            if case .failure = answer { continue }
            answer = result.outcome(operation: operation, request: request)
        }
        guard let answer else { throw connectionLost(operation) }
        return try answer.get()
    }

    borrowing func flush(_ operation: String, _ waitPolicy: WaitPolicy) throws(PostgresError) {
        while true {
            switch PQflush(pointer) {
            case 0: return
            case 1:
                try wait(toWrite: true, operation, waitPolicy)
                // The server may not read before the client has read its output.
                guard PQconsumeInput(pointer) == 1 else { throw connectionLost(operation) }
            default: throw connectionLost(operation)
            }
        }
    }

    /// Returns the next result of a request; `nil` after the last.
    borrowing func nextResult(
        _ operation: String, _ waitPolicy: WaitPolicy
    ) throws(PostgresError) -> ResultHandle? {
        while PQisBusy(pointer) == 1 {
            try wait(toWrite: false, operation, waitPolicy)
            guard PQconsumeInput(pointer) == 1 else { break }
        }
        return PQgetResult(pointer).map { ResultHandle($0) }
    }

    borrowing func wait(toWrite: Bool, _ operation: String, _ waitPolicy: WaitPolicy) throws(PostgresError) {
        while true {
            if waitPolicy.endsWithTask, Task.isCancelled {
                throw PostgresError(.cancelled, operation: operation, detail: "the task was cancelled")
            }
            switch waitPolicy.wakeUp.wait(socket: socket, toWrite: toWrite, until: waitPolicy.deadline) {
            case .ready: return
            case .signalled: continue
            case .timedOut:
                throw PostgresError(
                    .deadlineExceeded, operation: operation,
                    detail: "the server did not answer in time; the connection was closed")
            }
        }
    }

    borrowing func connectionLost(_ operation: String) -> PostgresError {
        PostgresError(.connectionLost, operation: operation, detail: lastMessage)
    }
}

extension PostgresPool {
    /// Runs `body` in a transaction: committed when it returns, rolled back when it throws.
    ///
    /// The whole body is run again, five times at most, when the server gave the transaction up for a reason that may be
    /// gone the next time (serialization failure, deadlock), and once when the connection broke before `COMMIT` was
    /// sent. So it must have no effect but through its transaction. A connection that breaks during `COMMIT` is
    /// `commitUnknown` and never retried here.
    ///
    /// Cancelling the task ends the body's statements and rolls back; a `COMMIT` under way is seen through.
    @discardableResult
    package func transaction<R: Sendable>(
        isolation: PostgresIsolation = .readCommitted,
        _ body: @Sendable (PostgresTransaction) async throws -> R
    ) async throws -> R {
        var retries = TransactionRetries()
        while true {
            switch try await attempt(isolation, body) {
            case .committed(let result): return result
            case .failed(let error, let cause):
                guard let failures = retries.next(after: cause), !Task.isCancelled else { throw error }
                let delay = Backoff.transaction.delay(afterFailures: failures, randomness: randomness())
                // Cancellation shows at the next checkout.
                try? await Task.sleep(for: delay)
            }
        }
    }

    private enum Attempt<R: Sendable> {
        case committed(R)
        /// `cause` is the database's error beneath whatever the body threw.
        case failed(any Error, cause: PostgresError?)
    }

    private func attempt<R: Sendable>(
        _ isolation: PostgresIsolation, _ body: @Sendable (PostgresTransaction) async throws -> R
    ) async throws(PostgresError) -> Attempt<R> {
        let (lease, number) = try await begin(isolation)
        let transaction = PostgresTransaction(connection: lease.connection, number: number)
        do {
            let result = try await body(transaction)
            let commit = await lease.attempt { connection throws(PostgresError) -> Void? in
                try connection.commit(number)
            }
            checkin(lease, after: commit)
            if case .failure(let error) = commit {
                return .failed(error, cause: error.code == .transactionAborted ? transaction.firstFailure : error)
            }
            return .committed(result)
        } catch {
            await lease.connection.rollback(number)
            let isUsable = await lease.connection.isUsable()
            apply { $0.checkin(lease.id, isUsable: isUsable) }
            return .failed(error, cause: transaction.firstFailure)
        }
    }

    private func begin(_ isolation: PostgresIsolation) async throws(PostgresError) -> (PoolLease, UInt64) {
        while true {
            let lease = try await checkout()
            let answer = await lease.attempt { connection throws(PostgresError) in try connection.begin(isolation) }
            if case .success(let number?) = answer { return (lease, number) }
            checkin(lease, after: answer)
            _ = try answer.get()
        }
    }
}

/// How often one transaction has been run again.
struct TransactionRetries {
    static let maximum = 5

    private var failures = 0
    private var hasReconnected = false

    /// How many attempts have failed if another is to follow, else `nil`.
    mutating func next(after cause: PostgresError?) -> Int? {
        guard let cause, failures < Self.maximum else { return nil }
        if cause.isLostConnection, !hasReconnected {
            hasReconnected = true
        } else if !cause.isRetriableTransaction {
            return nil
        }
        failures += 1
        return failures
    }
}

internal import Primitives

extension PostgresPool {
    /// Runs `body` in a transaction: committed when it returns, rolled back when it throws.
    ///
    /// Retries the whole body at most five times after a serialization failure or deadlock, and once after the
    /// connection broke before `COMMIT` was sent. The body must therefore have no side effects outside the transaction.
    /// A connection that breaks during `COMMIT` throws `commitUnknown` without a retry.
    ///
    /// Cancelling the task ends the body's statements and rolls back; a `COMMIT` in progress is completed.
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
                let delay = Backoff.transaction.delay(afterFailures: failures, jitter: .equal, random: randomness())
                // A cancelled sleep is detected at the next checkout.
                try? await Task.sleep(for: delay)
            }
        }
    }

    private enum Attempt<R: Sendable> {
        case committed(R)
        /// `cause` is the first database error in the transaction; the body may have thrown another error.
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

struct TransactionRetries {
    static let maximum = 5

    private var failures = 0
    private var hasReconnected = false

    /// Returns the number of failed attempts if the transaction should be retried, else `nil`.
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

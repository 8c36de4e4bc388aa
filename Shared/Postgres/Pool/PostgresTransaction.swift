internal import Synchronization

/// An open transaction, valid while its body runs.
///
/// Statements run one at a time on one connection, even when issued concurrently. After the body has returned, they
/// throw `transactionEnded`.
package final class PostgresTransaction: Sendable {
    private let connection: PostgresConnection
    private let number: UInt64
    /// The first error of a statement; after it, the transaction cannot commit.
    private let failure = Mutex<PostgresError?>(nil)

    init(connection: PostgresConnection, number: UInt64) {
        self.connection = connection
        self.number = number
    }

    package func query(_ sql: SQL) async throws(PostgresError) -> [PostgresRow] { try await run(sql).rows }

    /// Runs a statement and returns the number of affected rows.
    @discardableResult
    package func execute(_ sql: SQL) async throws(PostgresError) -> Int { try await run(sql).affected }

    /// The first database error in the transaction, even if the body caught it.
    var firstFailure: PostgresError? { failure.withLock { $0 } }

    private func run(_ sql: SQL) async throws(PostgresError) -> StatementResult {
        try await perform { connection, number throws(PostgresError) in try connection.run(sql, in: number) }
    }

    /// Runs `work` on the transaction's connection and records its first error.
    func perform<R: Sendable>(
        _ work: @Sendable (isolated PostgresConnection, UInt64) throws(PostgresError) -> R
    ) async throws(PostgresError) -> R {
        let (connection, number) = (connection, number)
        let result: Result<R, PostgresError> = await withTaskCancellationHandler {
            await connection.attempt { connection throws(PostgresError) in try work(connection, number) }
        } onCancel: {
            connection.interrupt()
        }
        if case .failure(let error) = result { failure.withLock { $0 = $0 ?? error } }
        return try result.get()
    }
}

extension PostgresConnection {
    /// Runs `work` on the connection's thread. Returns the error as a value, because closures lose typed throws.
    func attempt<R: Sendable>(
        _ work: @Sendable (isolated PostgresConnection) throws(PostgresError) -> R
    ) -> Result<R, PostgresError> {
        do { return .success(try work(self)) } catch { return .failure(error) }
    }
}

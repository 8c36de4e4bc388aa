internal import Synchronization

/// A transaction that is open, for as long as the body that was given it runs.
///
/// Statements run one after the other on one connection, even when issued concurrently. Used after the body has
/// returned, it answers `transactionEnded`.
package final class PostgresTransaction: Sendable {
    private let connection: PostgresConnection
    private let number: UInt64
    /// The first error of a statement: after it, nothing can be committed any more.
    private let failure = Mutex<PostgresError?>(nil)

    init(connection: PostgresConnection, number: UInt64) {
        self.connection = connection
        self.number = number
    }

    package func query(_ sql: SQL) async throws(PostgresError) -> [PostgresRow] { try await run(sql).rows }

    /// Runs a statement and returns how many rows it touched.
    @discardableResult
    package func execute(_ sql: SQL) async throws(PostgresError) -> Int { try await run(sql).affected }

    /// Why the transaction cannot be committed, whatever its body made of the error.
    var firstFailure: PostgresError? { failure.withLock { $0 } }

    private func run(_ sql: SQL) async throws(PostgresError) -> StatementResult {
        try await perform { connection, number throws(PostgresError) in try connection.run(sql, in: number) }
    }

    /// Does one thing on the transaction's connection and remembers if it fails.
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
    /// Runs `work` on the connection's thread; its error comes as a value, since closures lose the type of errors.
    func attempt<R: Sendable>(
        _ work: @Sendable (isolated PostgresConnection) throws(PostgresError) -> R
    ) -> Result<R, PostgresError> {
        do { return .success(try work(self)) } catch { return .failure(error) }
    }
}

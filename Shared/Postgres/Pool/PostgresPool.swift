package import Logging
internal import ServiceLifecycle
internal import Synchronization

/// A connection pool for one database.
///
/// **`run()` opens and maintains the connections; until it runs, callers wait for `checkoutTimeout` and fail.**
///
/// A statement outside a transaction is sent once: if the connection breaks during it, the caller gets the error. A
/// connection that broke while idle is replaced transparently. Waits for a connection are bounded by `checkoutTimeout`,
/// waits for the server by `statementTimeout` plus half a second. Cancelling the task ends a wait at once and closes
/// the connection of a running statement; the server cancels that statement within a second.
package final class PostgresPool: Service, Sendable {
    struct State: ~Copyable {
        var machine: PoolStateMachine
        var connections: [PoolStateMachine.ConnectionID: PostgresConnection] = [:]
        var waiters: [PoolStateMachine.WaiterID: Waiter] = [:]
        var waiterCount = 0
        var lastError: PostgresError?
    }

    typealias Waiter = CheckedContinuation<Result<PoolLease, PostgresError>, Never>

    let configuration: PostgresConfiguration
    let logger: Logger
    let randomness: @Sendable () -> Double
    let state: Mutex<State>
    /// The queue of work for `run()`.
    let (work, workContinuation) = AsyncStream.makeStream(of: ConnectionTask.self)

    /// - Parameter randomness: the jitter of retries, from 0 up to 1.
    package init(
        configuration: PostgresConfiguration, logger: Logger,
        randomness: @escaping @Sendable () -> Double = { .random(in: 0..<1) }
    ) {
        self.configuration = configuration
        self.logger = logger
        self.randomness = randomness
        state = Mutex(
            State(
                machine: PoolStateMachine(
                    size: configuration.poolSize, checkoutTimeout: configuration.checkoutTimeout)))
    }

    /// Whether the database was reachable at the last check; checked every two seconds.
    package var isAvailable: Bool { state.withLock { $0.machine.isAvailable } }

    /// The connections and callers at this moment, for metrics.
    package var statistics: PoolStatistics { state.withLock { $0.machine.statistics } }

    package func query(_ sql: SQL) async throws(PostgresError) -> [PostgresRow] { try await perform(sql).rows }

    /// Runs a statement and returns the number of affected rows.
    @discardableResult
    package func execute(_ sql: SQL) async throws(PostgresError) -> Int { try await perform(sql).affected }

    private func perform(_ sql: SQL) async throws(PostgresError) -> StatementResult {
        do {
            return try await performOnce(sql)
        } catch {
            // The server rejected the statement before running it; the second attempt prepares it again.
            guard error.code == .statementOutdated else { throw error }
            return try await performOnce(sql)
        }
    }

    private func performOnce(_ sql: SQL) async throws(PostgresError) -> StatementResult {
        while true {
            let lease = try await checkout()
            let answer = await lease.attempt { connection throws(PostgresError) in try connection.run(sql) }
            checkin(lease, after: answer)
            if let result = try answer.get() { return result }
        }
    }
}

package import Logging
internal import ServiceLifecycle
internal import Synchronization

/// A few connections to one database, shared by all who ask it something.
///
/// **Connections are opened and looked after by `run()`; until it runs, callers wait for `checkoutTimeout` and fail.**
///
/// A statement outside of a transaction is sent once: if the connection breaks while it runs, the caller learns of it
/// and decides. A connection that broke while idle is replaced without anybody noticing. Every wait is bounded: for a
/// free connection by `checkoutTimeout`, for the server by `statementTimeout` and half a second. Cancelling the waiting
/// task ends the wait at once; the connection of a statement in flight is thrown away, and the server gives the
/// statement up within a second.
package final class PostgresPool: Service, Sendable {
    struct State: ~Copyable {
        var machine: PoolMachine
        var connections: [PoolMachine.ConnectionID: PostgresConnection] = [:]
        var waiters: [PoolMachine.WaiterID: Waiter] = [:]
        var waitersMade = 0
        var lastError: PostgresError?
    }

    typealias Waiter = CheckedContinuation<Result<PoolLease, PostgresError>, Never>

    let configuration: PostgresConfiguration
    let logger: Logger
    let randomness: @Sendable () -> Double
    let state: Mutex<State>
    /// What `run()` has to do, in order.
    let (work, workContinuation) = AsyncStream.makeStream(of: Work.self)

    /// - Parameter randomness: from 0 up to 1, for spreading retries.
    package init(
        configuration: PostgresConfiguration, logger: Logger,
        randomness: @escaping @Sendable () -> Double = { .random(in: 0..<1) }
    ) {
        self.configuration = configuration
        self.logger = logger
        self.randomness = randomness
        state = Mutex(
            State(
                machine: PoolMachine(size: configuration.poolSize, checkoutTimeout: configuration.checkoutTimeout)))
    }

    /// Whether the database was there when last we looked, which is every two seconds.
    package var isAvailable: Bool { state.withLock { $0.machine.isAvailable } }

    package func query(_ sql: SQL) async throws(PostgresError) -> [PostgresRow] { try await perform(sql).rows }

    /// Runs a statement and returns how many rows it touched.
    @discardableResult
    package func execute(_ sql: SQL) async throws(PostgresError) -> Int { try await perform(sql).affected }

    private func perform(_ sql: SQL) async throws(PostgresError) -> StatementResult {
        do {
            return try await performOnce(sql)
        } catch {
            // Refused before it ran, and prepared anew the next time.
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

import Postgres
import ServiceConnections
import ServiceKit

/// Runs `body` with a pool of one connection to the database in `DATABASE_URL`.
func withDatabase<Result: Sendable>(
    _ configure: (inout PostgresConfiguration) -> Void = { _ in },
    _ body: @Sendable (PostgresPool) async throws -> Result
) async throws -> Result {
    let settings = try Environment.settings(.postgres)
    do {
        var configuration = try settings.postgres(
            poolSize: 1, applicationName: "pushctl", logger: Environment.logger)
        // On a busy machine, the first connection takes longer than a second.
        configuration.checkoutTimeout = .seconds(5)
        configure(&configuration)
        let pool = PostgresPool(configuration: configuration, logger: Environment.logger)
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await pool.run() }
            defer { group.cancelAll() }
            return try await body(pool)
        }
    } catch let error as PostgresError {
        // The pool closes early only when the task is cancelled.
        guard error.code != .cancelled, error.code != .poolClosed else { throw error }
        throw CommandError(error)
    } catch let error as ConfigurationError {
        throw CommandError(error)
    }
}

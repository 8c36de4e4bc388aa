package import Messaging
import Postgres

extension Outage {
    /// Runs `body`, telling a database that is away or not migrated yet from a mistake: the batch then waits instead of
    /// failing. Every other error is the handler's own, a statement that ran out of time included: the batch is then
    /// halved until the statement is short enough, or the message that makes it long is alone.
    ///
    /// A service's statements are constant, so what the server says about their text (SQLSTATE class 42: syntax, names
    /// and rights; 3F: the schema) is never about a message: it is a database that is not as it must be.
    @discardableResult
    package static func ofDatabase<Result>(
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
    ) async throws -> Result {
        do {
            return try await body()
        } catch let error as PostgresError where error.isOutage {
            throw Outage("the database", underlying: error)
        } catch let error as PostgresError {
            guard case .sqlState(let state) = error.code, state.hasPrefix("42") || state.hasPrefix("3F") else {
                throw error
            }
            throw Outage("the service's tables (run `pushctl migrate`)", underlying: error)
        }
    }
}

extension Error {
    /// Whether it says that the database is away, too busy, or not as it must be: a client may ask the same again later.
    package var isDatabaseAway: Bool {
        switch self {
        case is Outage: true
        case let error as PostgresError: error.isOutage || error.isTimeout
        default: false
        }
    }
}

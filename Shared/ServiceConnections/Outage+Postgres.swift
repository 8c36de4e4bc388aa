package import Messaging
import Postgres

extension Outage {
    /// Runs `body` and throws `Outage` if the database is unreachable or not migrated: the batch then waits. Other
    /// errors are rethrown, including time-outs: the batch is then halved until its statement is fast enough, or the
    /// slow message is alone.
    ///
    /// A service's statements are constant. Errors about their text (SQLSTATE class 42: syntax, names and rights; 3F:
    /// schema) are therefore never caused by a message, but by a database in the wrong state.
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
    /// Whether the database is unreachable, overloaded or not migrated; a client may retry later.
    package var isDatabaseUnavailable: Bool {
        switch self {
        case is Outage: true
        case let error as PostgresError: error.isOutage || error.isTimeout
        default: false
        }
    }
}

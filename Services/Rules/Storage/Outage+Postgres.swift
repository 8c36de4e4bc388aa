import Messaging
import Postgres

extension Outage {
    /// Runs `work`, telling a database that is away or not migrated yet from a mistake.
    ///
    /// The statements are constant, so what the server says about their text (SQLSTATE class 42, syntax, names and
    /// rights; 3F, the schema) is never about a message: it is a database that is not as it must be, and is waited for.
    @discardableResult
    static func whenAway<Result>(_ work: () async throws -> Result) async throws -> Result {
        do {
            return try await work()
        } catch let error as PostgresError where error.isOutage {
            throw Outage("Postgres", underlying: error)
        } catch let error as PostgresError {
            guard case .sqlState(let state) = error.code, state.hasPrefix("42") || state.hasPrefix("3F") else {
                throw error
            }
            throw Outage("the tables of rules: apply the migrations", underlying: error)
        }
    }
}

import Postgres

/// The server cancelled a statement that took too long: the fault of the statement's work, and no outage.
struct PostgresStatementTimeout: Error, CustomStringConvertible {
    let description: String

    /// `nil` for every other error.
    init?(_ error: any Error) {
        // 57014 query_canceled.
        guard let error = error as? PostgresError, error.code == .sqlState("57014") else { return nil }
        description = error.description
    }
}

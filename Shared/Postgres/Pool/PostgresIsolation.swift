/// A transaction isolation level (Postgres manual, 13.2).
package enum PostgresIsolation: Hashable, Sendable, CaseIterable {
    case readCommitted
    case repeatableRead
    case serializable

    var beginStatement: String {
        switch self {
        case .readCommitted: "BEGIN ISOLATION LEVEL READ COMMITTED"
        case .repeatableRead: "BEGIN ISOLATION LEVEL REPEATABLE READ"
        case .serializable: "BEGIN ISOLATION LEVEL SERIALIZABLE"
        }
    }
}

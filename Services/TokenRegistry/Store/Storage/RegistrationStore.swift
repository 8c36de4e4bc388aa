import FoundationEssentials
package import Postgres
import PushProtocol

/// The registration table. Operations run one statement for a whole batch, or several in one transaction. Triggers on
/// the table write the device events to the outbox (migration 0002).
///
/// A request without a time gets the database's, the common clock of all processes.
package struct RegistrationStore: Sendable {
    /// Default maximum of active registrations of a user in an app. Beyond it, the one registered longest ago is
    /// evicted. It bounds the size of a user's pushes.
    package static let defaultDevicesPerUser = 100

    package let database: PostgresPool
    let tokens: TokenKeys
    package let devicesPerUser: Int

    package init(_ database: PostgresPool, tokens: TokenKeys = .none, devicesPerUser: Int = defaultDevicesPerUser) {
        self.database = database
        self.tokens = tokens
        self.devicesPerUser = devicesPerUser
    }
}

/// Advisory locks, held until the transaction ends. Always taken in one order, to prevent deadlocks.
enum AdvisoryLock {
    static func user(_ app: AppID, _ user: UserID) -> String { "user \(app) \(user)" }
    static func installation(_ app: AppID, _ installation: InstallationID) -> String {
        "installation \(app) \(installation)"
    }

    /// Takes the locks in a statement of its own, so that later statements see everything committed before.
    static func take(_ names: Set<String>) -> SQL {
        """
        SELECT pg_advisory_xact_lock(key) FROM (
            SELECT DISTINCT hashtextextended(name, 0) AS key FROM unnest(\(Array(names))::text[]) AS n (name)
            ORDER BY key
        ) AS keys
        """
    }
}

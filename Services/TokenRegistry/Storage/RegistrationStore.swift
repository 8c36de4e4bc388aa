import FoundationEssentials
import Postgres
import PushProtocol

/// The registry's table. Every operation is made of statements for a whole batch, in one transaction where it takes
/// several; the table itself writes down what is announced of it (migration 0002).
///
/// Times: who gives none means the database's clock, which is the one clock of all processes.
struct RegistrationStore: Sendable {
    /// The most active registrations a user of an app has when nobody says; beyond it the longest unseen is evicted, so
    /// that nobody's devices can make a notification too large for everybody else's.
    static let usualDevicesPerUser = 100

    let database: PostgresPool
    let tokens: TokenKeys
    let devicesPerUser: Int

    init(_ database: PostgresPool, tokens: TokenKeys = .none, devicesPerUser: Int = usualDevicesPerUser) {
        self.database = database
        self.tokens = tokens
        self.devicesPerUser = devicesPerUser
    }
}

/// A name that transactions take turns on. Held until the transaction ends; always taken in one order, so that nobody
/// waits in a circle.
enum AdvisoryLock {
    static func user(_ app: AppID, _ user: UserID) -> String { "user \(app) \(user)" }
    static func installation(_ app: AppID, _ installation: InstallationID) -> String {
        "installation \(app) \(installation)"
    }

    /// A statement of its own: what comes after it in the transaction sees all that was committed before its turn.
    static func take(_ names: Set<String>) -> SQL {
        """
        SELECT pg_advisory_xact_lock(key) FROM (
            SELECT DISTINCT hashtextextended(name, 0) AS key FROM unnest(\(Array(names))::text[]) AS n (name)
            ORDER BY key
        ) AS keys
        """
    }
}

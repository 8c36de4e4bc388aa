import Postgres
import PushProtocol
import RuleEngine

/// The presence that apps report by heartbeats.
struct PresenceStore: Sendable {
    /// The maximum number of devices per user with an open app.
    static let mostDevices = 20

    let pool: PostgresPool

    /// Stores that the app is open on a device until `expiry`, and the view that it shows. Deletes ended leases of the
    /// user's other devices.
    ///
    /// - Returns: `false` if the app is open on ``mostDevices`` other devices.
    func keep(
        _ person: PersonKey, on device: InstallationID, viewing: String?, until expiry: Timestamp, now: Timestamp
    ) async throws -> Bool {
        let (app, user) = (person.app.rawValue, person.user.rawValue)
        return try await pool.execute(
            """
            WITH gone AS (
                DELETE FROM rules.presence WHERE app = \(app) AND user_id = \(user) AND device <> \(device.rawValue)
                    AND expires_at <= \(now.date)
            )
            INSERT INTO rules.presence (app, user_id, device, viewing, expires_at)
            SELECT \(app), \(user), \(device.rawValue), \(viewing), \(expiry.date) WHERE \(Self.mostDevices) > (
                SELECT count(*) FROM rules.presence WHERE app = \(app) AND user_id = \(user)
                    AND device <> \(device.rawValue) AND expires_at > \(now.date))
            ON CONFLICT (app, user_id, device) DO UPDATE SET viewing = EXCLUDED.viewing, expires_at = EXCLUDED.expires_at
            """) > 0
    }

    func end(_ person: PersonKey, on device: InstallationID) async throws {
        try await pool.execute(
            """
            DELETE FROM rules.presence WHERE app = \(person.app.rawValue) AND user_id = \(person.user.rawValue)
                AND device = \(device.rawValue)
            """)
    }
}

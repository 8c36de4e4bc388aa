import Postgres
import PushProtocol

/// Where apps are open, as they say themselves.
struct PresenceStore: Sendable {
    /// The most devices that a person is taken to look at at a time.
    static let mostDevices = 20

    let pool: PostgresPool

    /// The app is open on a device until then, and shows this. What is over on the person's other devices is forgotten.
    ///
    /// - Returns: whether there was room for another device.
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

    /// The app is not open on a device any more.
    func end(_ person: PersonKey, on device: InstallationID) async throws {
        try await pool.execute(
            """
            DELETE FROM rules.presence WHERE app = \(person.app.rawValue) AND user_id = \(person.user.rawValue)
                AND device = \(device.rawValue)
            """)
    }
}

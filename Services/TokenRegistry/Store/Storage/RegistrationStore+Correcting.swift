package import FoundationEssentials
package import Postgres
package import PushProtocol
import TokenEncryption

extension RegistrationStore {
    /// Moves a registration to its correct environment, in one statement, so that sign-outs and registrations are
    /// ordered before or after it. The environment is part of the id, so this creates another registration with the
    /// same owner and time. An existing registration in that environment stays if it is newer, or ended after this one
    /// was made.
    ///
    /// - Returns: whether there was an active registration to move.
    package func correct(
        device: UUID, of app: AppID, to environment: ProviderEnvironment
    ) async throws(PostgresError) -> Bool {
        guard let old = try await active(device, of: app) else { return false }
        let moved = DerivedID.device(app: app, provider: old.provider, environment: environment, token: old.token)
        let token = tokens.cipher.seal(old.token, device: moved, app: app)
        let correction = Self.correction(of: device, to: moved, in: environment, token: token)
        return try await database.query(correction).single(Int64.self) > 0
    }

    /// - Parameter token: the token as stored in the row of `moved`.
    static func correction(
        of device: UUID, to moved: UUID, in environment: ProviderEnvironment, token: String
    ) -> SQL {
        """
        WITH old AS (
            UPDATE registry.registration
            SET state = 'replaced', state_reason = 'environment corrected', state_changed_at = statement_timestamp(),
                ended_at = registered_at, successor = \(moved)
            WHERE device_id = \(device) AND state = 'active' AND environment <> \(environment.rawValue)
            RETURNING *
        ), new AS (
            INSERT INTO registry.registration AS r
                (device_id, app, user_id, provider, environment, token, kind, installation, scope, topic, locale,
                time_zone, app_version, registered_at, stale_since, state_changed_at)
            SELECT \(moved)::uuid, app, user_id, provider, \(environment.rawValue), \(token), kind, installation, scope,
                topic, locale, time_zone, app_version, registered_at, stale_since, statement_timestamp()
            FROM old
            ON CONFLICT (device_id) DO UPDATE SET
                user_id = excluded.user_id, token = excluded.token, kind = excluded.kind,
                installation = excluded.installation, scope = excluded.scope, topic = excluded.topic,
                locale = excluded.locale, time_zone = excluded.time_zone, app_version = excluded.app_version,
                registered_at = excluded.registered_at, stale_since = excluded.stale_since, ended_at = NULL,
                successor = NULL, state = 'active', state_reason = NULL, state_changed_at = excluded.state_changed_at
            WHERE r.registered_at <= excluded.registered_at
                AND (r.state = 'active' OR r.state = 'replaced' AND r.ended_at IS NULL
                    OR coalesce(r.ended_at, r.state_changed_at) <= excluded.registered_at)
        )
        SELECT count(*) FROM old
        """
    }

    /// Reads an active APNs registration without a lock: an id's provider never changes, and its token not while it is
    /// active. `nil` also if the token is unreadable; nothing is sent to it in either environment.
    private func active(_ device: UUID, of app: AppID) async throws(PostgresError) -> Registration? {
        let rows = try await database.query(
            """
            SELECT \(Registration.columns) FROM registry.registration r
            WHERE r.device_id = \(device) AND r.app = \(app.rawValue) AND r.provider = 'apns' AND r.state = 'active'
            """)
        guard let row = rows.first else { return nil }
        return UnreadableRegistrations.readOrSkip(of: app) { try Registration(row, tokens) }
    }
}

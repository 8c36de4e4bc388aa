import Postgres
import PushProtocol
import FoundationEssentials

/// The registry's table. Every operation is one statement for a whole batch, and each is atomic on its own.
struct RegistrationStore: Sendable {
    /// The most active registrations a user of an app has; beyond it the longest not registered again is evicted, so that
    /// nobody's devices can make a notification too large for everybody else's.
    static let maximumPerUser = 100

    private let database: PostgresPool

    init(_ database: PostgresPool) { self.database = database }

    /// Takes each claim: inserts it, or revives it, or takes it over from another user, and bumps its time.
    ///
    /// Two claims of one token in a batch: the later one wins. The rows are written in the order of their keys, so that
    /// two batches cannot deadlock.
    func register(_ claims: [Claim]) async throws {
        let latest = Dictionary(claims.map { ($0.device, $0) }) { _, later in later }
        let rows = latest.values.sorted { $0.device.uuidString < $1.device.uuidString }
        guard !rows.isEmpty else { return }
        try await database.transaction { transaction in
            try await transaction.execute(Self.upsert(rows))
            try await transaction.execute(Self.eviction(of: rows))
        }
    }

    private static func upsert(_ rows: [Claim]) -> SQL {
        """
        INSERT INTO registry.registration AS r
            (device_id, app, user_id, provider, environment, token, registered_at, state_changed_at)
        SELECT device_id, app, user_id, provider, environment, token, clock_timestamp(), clock_timestamp()
        FROM unnest(
            \(rows.map(\.device))::uuid[], \(rows.map(\.app.rawValue))::text[],
            \(rows.map(\.user.rawValue))::text[], \(rows.map(\.provider.rawValue))::text[],
            \(rows.map(\.environment.rawValue))::text[], \(rows.map(\.token.secret))::text[]
        ) AS c (device_id, app, user_id, provider, environment, token)
        ON CONFLICT (device_id) DO UPDATE SET
            user_id = excluded.user_id,
            registered_at = greatest(r.registered_at, excluded.registered_at),
            state = 'active', state_reason = NULL,
            state_changed_at = CASE WHEN r.state = 'active' AND r.user_id = excluded.user_id
                THEN r.state_changed_at ELSE excluded.state_changed_at END
        """
    }

    private static func eviction(of rows: [Claim]) -> SQL {
        """
        UPDATE registry.registration r
        SET state = 'evicted', state_reason = 'too many devices', state_changed_at = clock_timestamp()
        FROM (
            SELECT device_id, row_number() OVER (PARTITION BY app, user_id ORDER BY registered_at DESC, device_id) AS n
            FROM registry.registration a
            JOIN (
                SELECT DISTINCT * FROM unnest(
                    \(rows.map(\.app.rawValue))::text[], \(rows.map(\.user.rawValue))::text[]) AS u (app, user_id)
            ) AS u USING (app, user_id)
            WHERE a.state = 'active'
        ) AS ranked
        WHERE r.device_id = ranked.device_id AND ranked.n > \(maximumPerUser)
        """
    }

    /// Signs each claim's user out of its device; a device that is another user's by now is left alone.
    func unregister(_ claims: [Claim]) async throws(PostgresError) {
        guard !claims.isEmpty else { return }
        try await database.execute(
            """
            UPDATE registry.registration r
            SET state = 'signed-out', state_reason = 'unregistered', state_changed_at = clock_timestamp()
            FROM unnest(\(claims.map(\.device))::uuid[], \(claims.map(\.user.rawValue))::text[])
                AS c (device_id, user_id)
            WHERE r.device_id = c.device_id AND r.user_id = c.user_id AND r.state = 'active'
            """)
    }

    /// Compare and clear: deactivates each registration unless it was taken again after the time that the provider's
    /// word is about (`push-protocols` C.3).
    ///
    /// - Returns: the devices that were deactivated; the others are unknown, inactive already, or newer.
    func deactivate(_ invalidations: [Invalidation]) async throws(PostgresError) -> Set<UUID> {
        guard !invalidations.isEmpty else { return [] }
        let rows = try await database.query(
            """
            UPDATE registry.registration r
            SET state = 'invalidated', state_reason = c.reason, state_changed_at = clock_timestamp()
            FROM (
                SELECT DISTINCT ON (device_id) device_id, app, since, reason
                FROM unnest(
                    \(invalidations.map(\.device))::uuid[], \(invalidations.map(\.app.rawValue))::text[],
                    \(invalidations.map(\.notRegisteredSince.milliseconds))::bigint[],
                    \(invalidations.map(\.reason))::text[]
                ) AS u (device_id, app, since, reason)
                ORDER BY device_id, since DESC
            ) AS c
            WHERE r.device_id = c.device_id AND r.app = c.app AND r.state = 'active'
                AND r.registered_at < to_timestamp((c.since + 1) / 1000.0)
            RETURNING r.device_id
            """)
        var devices: Set<UUID> = []
        for row in rows { devices.insert(try row.decode(UUID.self, at: "device_id")) }
        return devices
    }

    /// Moves a registration to the environment it really lives in, in one statement: who signs out or registers
    /// meanwhile comes before it or after it. It becomes another registration (the environment is part of its id) with
    /// the same owner and time. Of two registrations of the token the later one decides: one that is there already and
    /// newer, or was signed out or invalidated since, stays as it is.
    ///
    /// - Returns: whether there was an active registration to move.
    func correct(
        device: UUID, of app: AppID, to environment: ProviderEnvironment
    ) async throws(PostgresError) -> Bool {
        guard let moved = try await successor(of: device, of: app, in: environment) else { return false }
        let count = try await database.query(
            """
            WITH old AS (
                UPDATE registry.registration
                SET state = 'replaced', state_reason = 'environment corrected', state_changed_at = clock_timestamp()
                WHERE device_id = \(device) AND state = 'active' AND environment <> \(environment.rawValue)
                RETURNING app, user_id, provider, token, registered_at
            ), new AS (
                INSERT INTO registry.registration AS r
                    (device_id, app, user_id, provider, environment, token, registered_at, state_changed_at)
                SELECT \(moved)::uuid, app, user_id, provider, \(environment.rawValue), token, registered_at,
                    clock_timestamp()
                FROM old
                ON CONFLICT (device_id) DO UPDATE SET
                    user_id = excluded.user_id, registered_at = excluded.registered_at, state = 'active',
                    state_reason = NULL, state_changed_at = excluded.state_changed_at
                WHERE r.registered_at <= excluded.registered_at
                    AND (r.state IN ('active', 'replaced') OR r.state_changed_at < excluded.registered_at)
            )
            SELECT count(*) FROM old
            """
        ).single(Int64.self)
        return count > 0
    }

    /// The id that a registration's token has in `environment`. Neither the token nor the provider behind an id ever
    /// changes, so there is nothing to lock.
    private func successor(
        of device: UUID, of app: AppID, in environment: ProviderEnvironment
    ) async throws(PostgresError) -> UUID? {
        let rows = try await database.query(
            """
            SELECT device_id, app, user_id, provider, environment, token, registered_at
            FROM registry.registration WHERE device_id = \(device) AND app = \(app.rawValue) AND provider = 'apns'
            """)
        guard let row = rows.first else { return nil }
        let old = try Registration(row)
        return DerivedID.device(app: old.app, provider: old.provider, environment: environment, token: old.token)
    }

    /// The active registrations of all these users, in one query.
    func devices(of users: Set<AppUser>) async throws(PostgresError) -> [AppUser: [Registration]] {
        guard !users.isEmpty else { return [:] }
        let keys = Array(users)
        let rows = try await database.query(
            """
            SELECT r.device_id, r.app, r.user_id, r.provider, r.environment, r.token, r.registered_at
            FROM unnest(\(keys.map(\.app.rawValue))::text[], \(keys.map(\.user.rawValue))::text[]) AS u (app, user_id)
            JOIN registry.registration r ON r.app = u.app AND r.user_id = u.user_id AND r.state = 'active'
            ORDER BY r.device_id
            """)
        var devices: [AppUser: [Registration]] = [:]
        for row in rows {
            let registration = try Registration(row)
            devices[AppUser(app: registration.app, user: registration.user), default: []].append(registration)
        }
        return devices
    }

    /// Everything known about one user's devices, the latest first, for operators.
    func history(of user: AppUser) async throws(PostgresError) -> [RegistrationRecord] {
        let rows = try await database.query(
            """
            SELECT device_id, app, user_id, provider, environment, token, registered_at,
                state, state_reason, state_changed_at
            FROM registry.registration
            WHERE app = \(user.app.rawValue) AND user_id = \(user.user.rawValue)
            ORDER BY registered_at DESC, device_id
            LIMIT 200
            """)
        var records: [RegistrationRecord] = []
        for row in rows { records.append(try RegistrationRecord(row)) }
        return records
    }
}

/// A provider's word about one registration.
struct Invalidation: Hashable, Sendable {
    var app: AppID
    var device: UUID
    var notRegisteredSince: Timestamp
    var reason: String

    init(app: AppID, device: UUID, notRegisteredSince: Timestamp, reason: String) {
        self.app = app
        self.device = device
        self.notRegisteredSince = notRegisteredSince
        self.reason = reason
    }
}

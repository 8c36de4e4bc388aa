package import FoundationEssentials
package import PushProtocol
import Postgres
import TokenEncryption

extension RegistrationStore {
    /// Registers devices: inserts each registration, revives it, or moves it to its new user, and updates its time.
    /// Ignores a request from before the registration's end.
    ///
    /// - Returns: the stored registrations, including repeats.
    @discardableResult
    package func register(_ claims: [RegistrationRequest]) async throws -> Set<UUID> {
        try await registerReturningNew(claims).taken
    }

    /// Registers devices and returns which registrations are new to their user.
    package func registerReturningNew(_ claims: [RegistrationRequest]) async throws -> Registered {
        var registered = Registered()
        for wave in claims.waves {
            let part = try await register(wave: wave)
            registered.taken.formUnion(part.taken)
            registered.arrived.formUnion(part.arrived)
        }
        return registered
    }

    package struct Registered: Hashable, Sendable {
        /// The stored registrations, including repeats.
        package var taken: Set<UUID> = []
        /// Of these, the registrations that are new to their user: inserted, revived, or taken over.
        package var arrived: Set<UUID> = []
    }

    private func register(wave claims: [RegistrationRequest]) async throws -> Registered {
        let lockNames = Set(claims.flatMap(\.lockNames))
        return try await database.transaction { transaction in
            try await transaction.execute(AdvisoryLock.take(lockNames))
            return try await take(claims, in: transaction)
        }
    }

    /// Stores requests whose advisory locks are held. Each token occurs once, and each installation has one user.
    func take(_ claims: [RegistrationRequest], in transaction: PostgresTransaction) async throws -> Registered {
        // Sorted by id, so that concurrent batches lock rows in the same order.
        let claims = claims.map { ($0.device, $0) }.sorted { $0.0.uuidString < $1.0.uuidString }
        var registered = Registered()
        var arrived: Set<AppUser> = []
        var installations: Set<Installation> = []
        for row in try await transaction.query(Self.upsert(claims, tokens.cipher)) {
            let row = try Taken(row)
            registered.taken.insert(row.device)
            if row.isNewToUser {
                registered.arrived.insert(row.device)
                arrived.insert(row.user)
            }
            if let id = row.installation { installations.insert(Installation(app: row.user.app, id: id)) }
        }
        if !installations.isEmpty { try await transaction.execute(Self.settle(Array(installations))) }
        if !arrived.isEmpty {
            try await transaction.execute(Self.eviction(of: Array(arrived), beyond: devicesPerUser))
            _ = try await transaction.query(Self.surplus(of: Array(arrived)))
        }
        return registered
    }

    /// Maximum ended registrations kept for a user. Older ones are deleted, so that invented tokens cannot fill the
    /// table.
    static let mostEnded = 500

    /// Deletes these users' ended registrations beyond ``mostEnded``. The SQL function keeps at least 100.
    static func surplus(of users: [AppUser]) -> SQL {
        """
        SELECT registry.forget_surplus(
            \(users.map(\.app.rawValue))::text[], \(users.map(\.user.rawValue))::text[], \(mostEnded)::integer)
        """
    }

    /// One app on one device.
    package struct Installation: Hashable, Sendable {
        package var app: AppID
        package var id: InstallationID

        package init(app: AppID, id: InstallationID) {
            self.app = app
            self.id = id
        }
    }

    static func upsert(_ claims: [(device: UUID, claim: RegistrationRequest)], _ cipher: TokenCipher) -> SQL {
        let rows = claims.map(\.claim)
        let tokens = claims.map {
            cipher.seal(
                $1.token, device: $0, app: $1.app, provider: $1.provider, environment: $1.environment)
        }
        let requests: SQL = """
            unnest(
                \(claims.map(\.device))::uuid[], \(rows.map(\.app.rawValue))::text[],
                \(rows.map(\.user.rawValue))::text[], \(rows.map(\.provider.rawValue))::text[],
                \(rows.map(\.environment.rawValue))::text[], \(tokens.map(\.stored))::text[],
                \(tokens.map(\.moved))::text[],
                \(rows.map(\.kind.rawValue))::text[], \(rows.map(\.installation?.rawValue))::text[],
                \(rows.map(\.scope))::text[], \(rows.map(\.topic))::text[], \(rows.map(\.platform?.rawValue))::text[],
                \(rows.map(\.locale))::text[], \(rows.map(\.timeZone))::text[], \(rows.map(\.appVersion))::text[],
                \(rows.map(\.at?.date))::timestamptz[], \(rows.map(\.expiresAt?.date))::timestamptz[]
            ) AS c (device_id, app, user_id, provider, environment, token, moved_token, kind, installation, scope, topic,
                platform, locale, time_zone, app_version, at, expires_at)
            """
        return """
            \(upsert(from: requests))
            RETURNING r.device_id, r.app, r.user_id, r.installation, r.state_changed_at = statement_timestamp()
            """
    }

    /// Upserts registrations. A stored registration rejects older requests; an ended one rejects requests from before
    /// its end. A user's own sign-out does not reject another user's request. A request for a corrected environment
    /// applies to the registration it was moved to. A Live Activity belongs to the user for whom it was started: another
    /// user's request for its token on another installation is ignored while the registration is active.
    ///
    /// - Parameter requests: an item of `FROM` with the rows `c`: those of a batch, or of ``ImportStore``.
    static func upsert(from requests: SQL) -> SQL {
        """
        INSERT INTO registry.registration AS r
            (device_id, app, user_id, provider, environment, token, kind, installation, scope, topic,
            platform, locale, time_zone, app_version, expires_at, registered_at, state_changed_at)
        SELECT coalesce(s.successor, c.device_id), c.app, c.user_id, c.provider,
            CASE WHEN s.successor IS NULL THEN c.environment WHEN c.environment = 'production' THEN 'development'
                ELSE 'production' END,
            CASE WHEN s.successor IS NULL THEN c.token ELSE coalesce(c.moved_token, c.token) END,
            c.kind, c.installation, c.scope, c.topic, c.platform, c.locale, c.time_zone, c.app_version, c.expires_at,
            t.at, statement_timestamp()
        FROM \(requests)
        CROSS JOIN LATERAL (SELECT least(coalesce(c.at, statement_timestamp()), statement_timestamp()) AS at) AS t
        LEFT JOIN registry.erasure e ON e.app = c.app AND e.user_id = c.user_id
        LEFT JOIN registry.registration s
            ON s.device_id = c.device_id AND s.state = 'replaced' AND s.successor IS NOT NULL
        WHERE e.erased_at IS NULL OR t.at > e.erased_at
        ORDER BY 1
        ON CONFLICT (device_id) DO UPDATE SET
            user_id = excluded.user_id, token = excluded.token, kind = excluded.kind,
            installation = excluded.installation, scope = excluded.scope, topic = excluded.topic,
            platform = excluded.platform, locale = excluded.locale, time_zone = excluded.time_zone, app_version = excluded.app_version,
            expires_at = excluded.expires_at, registered_at = excluded.registered_at, stale_since = NULL, ended_at = NULL,
            successor = NULL, fallback_until = NULL, state = 'active', state_reason = NULL,
            state_changed_at = CASE WHEN r.state = 'active' AND r.user_id = excluded.user_id
                THEN r.state_changed_at ELSE excluded.state_changed_at END
        WHERE (excluded.registered_at > r.registered_at
                OR excluded.registered_at = r.registered_at AND excluded.user_id = r.user_id)
            AND (r.state = 'active' OR excluded.registered_at > coalesce(r.ended_at, r.state_changed_at)
                OR excluded.user_id <> r.user_id AND r.state NOT IN ('invalidated', 'replaced'))
            AND (r.state <> 'active' OR r.kind IS DISTINCT FROM 'live-activity' OR excluded.user_id = r.user_id
                OR r.installation IS NOT DISTINCT FROM excluded.installation)
        """
    }

    static func settle(_ installations: [Installation]) -> SQL {
        settle(
            """
            unnest(\(installations.map(\.app.rawValue))::text[], \(installations.map(\.id.rawValue))::text[])
                AS i (app, installation)
            """)
    }

    /// Ends an installation's earlier registrations. An installation has one user, the last to register, and one token
    /// of a kind and scope, the last (`Shared/Providers/ProviderFacts.md`, C.6 Environments and rotation).
    ///
    /// `MATERIALIZED`, as below: otherwise the planner may recompute the ranking for every row.
    ///
    /// - Parameter installations: an item of `FROM`, the distinct rows `i`.
    static func settle(_ installations: SQL) -> SQL {
        """
        WITH ranked AS MATERIALIZED (
            SELECT a.device_id, a.user_id, a.registered_at,
                a.user_id = first_value(a.user_id) OVER installation AS is_owners,
                row_number() OVER slot AS n,
                max(a.registered_at) OVER slot AS replaced_at, max(a.registered_at) OVER installation AS taken_at
            FROM \(installations)
            JOIN registry.registration a ON a.app = i.app AND a.installation = i.installation AND a.state = 'active'
            WINDOW installation AS (PARTITION BY a.app, a.installation ORDER BY a.registered_at DESC, a.device_id),
                slot AS (
                    PARTITION BY a.app, a.installation, a.kind, a.scope ORDER BY a.registered_at DESC, a.device_id)
        )
        UPDATE registry.registration r SET
            state = CASE WHEN s.is_owners THEN 'replaced' ELSE 'signed-out' END,
            state_reason = CASE WHEN s.is_owners THEN 'the token changed' ELSE 'another user signed in' END,
            ended_at = CASE WHEN s.is_owners THEN s.replaced_at ELSE s.taken_at END,
            state_changed_at = statement_timestamp()
        FROM ranked s
        WHERE r.device_id = s.device_id AND (NOT s.is_owners OR s.n > 1) AND r.state = 'active'
            AND r.user_id = s.user_id AND r.registered_at = s.registered_at
        """
    }

    static func eviction(of users: [AppUser], beyond limit: Int) -> SQL {
        eviction(
            of:
                "unnest(\(users.map(\.app.rawValue))::text[], \(users.map(\.user.rawValue))::text[]) AS u (app, user_id)",
            beyond: limit)
    }

    /// - Parameter users: an item of `FROM`, the distinct rows `u`.
    static func eviction(of users: SQL, beyond limit: Int) -> SQL {
        """
        WITH ranked AS MATERIALIZED (
            SELECT a.device_id, a.user_id, a.registered_at, row_number() OVER (
                PARTITION BY a.app, a.user_id ORDER BY a.registered_at DESC, a.device_id) AS n
            FROM \(users)
            JOIN registry.registration a ON a.app = u.app AND a.user_id = u.user_id AND a.state = 'active'
        )
        UPDATE registry.registration r
        SET state = 'evicted', state_reason = 'too many devices', state_changed_at = statement_timestamp(),
            ended_at = r.registered_at
        FROM ranked s
        WHERE r.device_id = s.device_id AND s.n > \(limit) AND r.state = 'active'
            AND r.user_id = s.user_id AND r.registered_at = s.registered_at
        """
    }
}

private struct Taken {
    let device: UUID
    let user: AppUser
    let installation: InstallationID?
    /// Whether the registration became the user's in this statement.
    let isNewToUser: Bool

    init(_ row: PostgresRow) throws(PostgresError) {
        device = try row.decode(UUID.self, at: 0)
        user = AppUser(app: try row.decode(AppID.self, at: 1), user: try row.decode(UserID.self, at: 2))
        installation = try row.decode(InstallationID?.self, at: 3)
        isNewToUser = try row.decode(Bool.self, at: 4)
    }
}

extension RegistrationRequest {
    /// The advisory locks of a registration: its user, for the device limit and erasures, and its installation.
    var lockNames: [String] {
        let user = AdvisoryLock.user(app, user)
        guard let installation else { return [user] }
        return [user, AdvisoryLock.installation(app, installation)]
    }
}

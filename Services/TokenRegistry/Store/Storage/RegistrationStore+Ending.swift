package import FoundationEssentials
package import Postgres
package import PushProtocol
import TokenEncryption

extension RegistrationStore {
    /// Signs users out of devices. Skips a device that has another user now or was registered after the request's time.
    ///
    /// - Parameter notesUnknown: whether to store an unknown device as signed out, since an earlier registration may
    ///   still arrive. Set it for commands only: an HTTP client could fill the table with invented tokens.
    /// - Returns: the number of registrations that ended.
    @discardableResult
    package func unregister(_ claims: [RegistrationRequest], notesUnknown: Bool = true) async throws -> Int {
        guard !claims.isEmpty else { return 0 }
        return try await database.transaction { transaction in
            // Serialises with an erasure of the same users.
            try await transaction.execute(AdvisoryLock.take(Set(claims.map { AdvisoryLock.user($0.app, $0.user) })))
            // Insert first: a concurrent registration then waits for this transaction and finds the row.
            if notesUnknown { try await transaction.execute(Self.signOutInsertion(claims, tokens.cipher)) }
            return try await transaction.query(Self.departure(claims.map { ($0.device, $0.owner, $0.at) })).ended
        }
    }

    /// Signs a user out of one registration. Skips a registration of another user or app.
    ///
    /// - Returns: the number of registrations that ended: 1 or 0.
    @discardableResult
    package func end(_ device: UUID, of user: AppUser) async throws(PostgresError) -> Int {
        try await database.query(Self.departure([(device, user, nil)])).ended
    }

    /// Inserts signed-out rows for unknown devices. Their registration time is the epoch, so they reject no others.
    static func signOutInsertion(_ claims: [RegistrationRequest], _ cipher: TokenCipher) -> SQL {
        """
        INSERT INTO registry.registration
            (device_id, app, user_id, provider, environment, token, kind, registered_at, state, state_reason,
            state_changed_at, ended_at)
        SELECT DISTINCT ON (device_id) device_id, app, user_id, provider, environment, token, kind, 'epoch',
            'signed-out', 'unregistered', statement_timestamp(), left_at
        FROM unnest(
            \(claims.map(\.device))::uuid[], \(claims.map(\.app.rawValue))::text[],
            \(claims.map(\.user.rawValue))::text[], \(claims.map(\.provider.rawValue))::text[],
            \(claims.map(\.environment.rawValue))::text[],
            \(claims.map { cipher.seal($0.token, device: $0.device, app: $0.app) })::text[],
            \(claims.map(\.kind.rawValue))::text[], \(claims.map(\.at?.date))::timestamptz[]
        ) AS c (device_id, app, user_id, provider, environment, token, kind, at)
        CROSS JOIN LATERAL (SELECT least(coalesce(at, statement_timestamp()), statement_timestamp()) AS left_at) AS t
        WHERE NOT EXISTS (
            SELECT FROM registry.erasure e WHERE e.app = c.app AND e.user_id = c.user_id AND e.erased_at >= left_at)
        ORDER BY device_id, left_at DESC
        ON CONFLICT (device_id) DO NOTHING
        """
    }

    /// Signs out. Also updates the time of a registration that has ended already, so that a late registration from
    /// before that time does not revive it.
    static func departure(_ departures: [(device: UUID, owner: AppUser, at: Timestamp?)]) -> SQL {
        """
        UPDATE registry.registration r SET
            state = CASE WHEN r.state IN ('invalidated', 'replaced') THEN r.state ELSE 'signed-out' END,
            state_reason = CASE WHEN r.state IN ('invalidated', 'replaced') THEN r.state_reason ELSE 'unregistered' END,
            state_changed_at = CASE WHEN r.state = 'active' THEN statement_timestamp() ELSE r.state_changed_at END,
            ended_at = d.at
        FROM (
            SELECT coalesce(s.successor, c.device_id) AS device_id, c.app, c.user_id,
                max(least(coalesce(c.at, statement_timestamp()), statement_timestamp())) AS at
            FROM unnest(
                \(departures.map(\.device))::uuid[], \(departures.map(\.owner.app.rawValue))::text[],
                \(departures.map(\.owner.user.rawValue))::text[], \(departures.map(\.at?.date))::timestamptz[]
            ) AS c (device_id, app, user_id, at)
            LEFT JOIN registry.registration s
                ON s.device_id = c.device_id AND s.state = 'replaced' AND s.successor IS NOT NULL
            GROUP BY 1, 2, 3
        ) AS d
        WHERE r.device_id = d.device_id AND r.app = d.app AND r.user_id = d.user_id AND r.registered_at <= d.at
            AND (r.state = 'active' OR r.state <> 'erased' AND coalesce(r.ended_at, r.state_changed_at) < d.at)
        RETURNING r.state_changed_at = statement_timestamp()
        """
    }

    /// Deactivates registrations by compare-and-clear: skips those registered again after the provider's invalidation
    /// time (`Shared/Providers/ProviderFacts.md`, C.3 Invalidation times).
    ///
    /// - Returns: the deactivated devices; the others are unknown, inactive already, or newer.
    package func deactivate(_ invalidations: [Invalidation]) async throws(PostgresError) -> Set<UUID> {
        guard !invalidations.isEmpty else { return [] }
        var devices: Set<UUID> = []
        for row in try await database.query(Self.invalidation(invalidations)) {
            devices.insert(try row.decode(UUID.self, at: 0))
        }
        return devices
    }

    /// Ends a registration now, on an operator's request.
    ///
    /// - Returns: whether it was active; `nil` if the app has no such registration.
    package func deactivate(_ device: UUID, of app: AppID) async throws(PostgresError) -> Bool? {
        // A time in the future, which the statement caps to now.
        let word = Invalidation(
            app: app, device: device, notRegisteredSince: .now + .seconds(86_400), reason: "an operator's word")
        if try await deactivate([word]).contains(device) { return true }
        let known = try await database.query(
            "SELECT true FROM registry.registration WHERE device_id = \(device) AND app = \(app.rawValue)")
        return known.isEmpty ? nil : false
    }

    /// Ends registrations as of the provider's time, not now: a later registration that is still in transit revives
    /// them. Caps the time to now, for providers whose clock is ahead.
    static func invalidation(_ invalidations: [Invalidation]) -> SQL {
        """
        UPDATE registry.registration r
        SET state = 'invalidated', state_reason = c.reason, state_changed_at = statement_timestamp(),
            ended_at = greatest(r.registered_at, c.since)
        FROM (
            SELECT DISTINCT ON (device_id, app) device_id, app, least(since, statement_timestamp()) AS since, reason
            FROM unnest(
                \(invalidations.map(\.device))::uuid[], \(invalidations.map(\.app.rawValue))::text[],
                \(invalidations.map(\.notRegisteredSince.date))::timestamptz[], \(invalidations.map(\.reason))::text[]
            ) AS u (device_id, app, since, reason)
            ORDER BY device_id, app, u.since DESC
        ) AS c
        WHERE r.device_id = c.device_id AND r.app = c.app AND r.state = 'active'
            AND r.registered_at < c.since + interval '1 millisecond'
        RETURNING r.device_id
        """
    }

    /// Erases a user: ends every registration, deletes its token and device data, and deletes memberships. Keeps data
    /// newer than `moment`. Messages from before it that arrive later are void.
    ///
    /// - Returns: the number of erased registrations.
    @discardableResult
    package func erase(_ user: AppUser, at moment: Timestamp? = nil) async throws -> Int {
        try await database.transaction { transaction in
            try await transaction.execute(AdvisoryLock.take([AdvisoryLock.user(user.app, user.user)]))
            let erasedAt = try await transaction.query(Self.tombstoneUpsert(of: user, at: moment)).single(Date.self)
            let count = try await transaction.execute(Self.erasure(of: user, at: erasedAt))
            try await transaction.execute(MembershipStore.erasure(of: user, at: erasedAt))
            try await transaction.execute(HistoryStore.erasure(of: user))
            try await transaction.execute(LiveStateStore.erasure(of: user))
            try await transaction.execute(CampaignStore.erasure(of: user))
            try await transaction.execute(CampaignStore.sampleErasure(of: user))
            try await transaction.execute(
                """
                INSERT INTO registry.outbox (past, app, user_id)
                VALUES ('user-erased', \(user.app.rawValue), \(user.user.rawValue))
                """)
            return count
        }
    }

    private static func tombstoneUpsert(of user: AppUser, at moment: Timestamp?) -> SQL {
        """
        INSERT INTO registry.erasure AS e (app, user_id, erased_at)
        VALUES (\(user.app.rawValue), \(user.user.rawValue),
            least(coalesce(\(moment?.date)::timestamptz, statement_timestamp()), statement_timestamp()))
        ON CONFLICT (app, user_id) DO UPDATE
            SET erased_at = greatest(e.erased_at, excluded.erased_at), noted_at = excluded.noted_at
        RETURNING erased_at
        """
    }

    static func erasure(of user: AppUser, at moment: Date) -> SQL {
        """
        UPDATE registry.registration r
        SET state = 'erased', state_reason = 'the user was erased', state_changed_at = statement_timestamp(),
            ended_at = \(moment), token = NULL, installation = NULL, scope = NULL, topic = NULL, locale = NULL,
            platform = NULL, time_zone = NULL, app_version = NULL, stale_since = NULL, successor = NULL, fallback_until = NULL,
            suspected_at = NULL
        FROM (
            SELECT device_id FROM registry.registration
            WHERE app = \(user.app.rawValue) AND user_id = \(user.user.rawValue) AND state = 'active'
            UNION ALL
            SELECT device_id FROM registry.registration
            WHERE app = \(user.app.rawValue) AND user_id = \(user.user.rawValue) AND state <> 'active'
        ) AS theirs
        WHERE r.device_id = theirs.device_id AND r.user_id = \(user.user.rawValue) AND r.state <> 'erased'
            AND r.registered_at <= \(moment)
        """
    }
}

extension [PostgresRow] {
    /// The number of rows of a sign-out that were active before.
    var ended: Int {
        get throws(PostgresError) {
            var count = 0
            for row in self where try row.decode(Bool.self, at: 0) { count += 1 }
            return count
        }
    }
}

/// A provider's statement that a registration is no longer valid.
package struct Invalidation: Hashable, Sendable {
    package var app: AppID
    package var device: UUID
    package var notRegisteredSince: Timestamp
    package var reason: String

    package init(app: AppID, device: UUID, notRegisteredSince: Timestamp, reason: String) {
        self.app = app
        self.device = device
        self.notRegisteredSince = notRegisteredSince
        self.reason = reason
    }
}

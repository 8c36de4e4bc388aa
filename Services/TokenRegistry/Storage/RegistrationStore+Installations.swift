import FoundationEssentials
import Postgres
import PushProtocol

extension RegistrationStore {
    /// Makes an installation exactly what its user says it is, in one transaction: the claims are taken as
    /// ``register(_:)`` takes them, and what the user had there besides ends.
    ///
    /// - Parameters:
    ///   - claims: of this user and installation, no token and no kind and scope twice
    ///     (``InstallationBody/contradiction``).
    ///   - moment: as of when the rest ends; now by default.
    /// - Returns: what the installation has now, and whether the user had nothing on it before.
    func replace(
        _ installation: Installation, of user: UserID, with claims: [RegistrationRequest], at moment: Timestamp? = nil
    ) async throws -> Replaced {
        let turns: Set = [
            AdvisoryLock.user(installation.app, user), AdvisoryLock.installation(installation.app, installation.id),
        ]
        return try await database.transaction { transaction in
            try await transaction.execute(AdvisoryLock.take(turns))
            let isNew = try await transaction.query(Self.possession(of: installation, by: user)).isEmpty
            let registered = try await take(claims, in: transaction)
            let taken = Array(registered.taken)
            var kept = taken
            let fallbacks = Self.fallbacks(on: installation, of: user, beside: taken, at: moment)
            for row in try await transaction.query(fallbacks) {
                kept.append(try row.decode(UUID.self, at: 0))
            }
            let ended = try await transaction.query(
                Self.ending(installation, of: user, except: kept, at: moment, .dropped)
            ).ended
            let records = try await transaction.query(Self.possession(of: installation, by: user))
                .compactMap { HistoryEntry($0, tokens, of: installation.app).record }
            return Replaced(records: records, isNew: isNew, changes: registered.arrived.count + ended)
        }
    }

    /// An installation after it was replaced.
    struct Replaced: Hashable, Sendable {
        var records: [RegistrationRecord]
        /// Whether the user had nothing on it before.
        var isNew: Bool
        /// How many registrations began or ended.
        var changes: Int
    }

    /// Signs a user out of an installation, as of `moment` or now; what another user has there is left alone.
    ///
    /// - Returns: how many registrations ended.
    @discardableResult
    func end(_ installation: Installation, of user: UserID, at moment: Timestamp? = nil) async throws -> Int {
        try await database.transaction { transaction in
            try await transaction.execute(
                AdvisoryLock.take([
                    AdvisoryLock.user(installation.app, user),
                    AdvisoryLock.installation(installation.app, installation.id),
                ]))
            return try await transaction.query(
                Self.ending(installation, of: user, except: [], at: moment, .left)
            ).ended
        }
    }

    /// What a user has on an installation.
    func registrations(
        on installation: Installation, of user: UserID
    ) async throws(PostgresError) -> [RegistrationRecord] {
        try await records(Self.possession(of: installation, by: user), of: installation.app)
    }

    /// Everything that a user has in an app, one installation after the other, what has none last.
    func registrations(of user: AppUser) async throws(PostgresError) -> [RegistrationRecord] {
        try await records(Self.possessions(of: user), of: user.app)
    }

    /// The rows that can be read. The others are counted (``UnreadableRegistrations``).
    private func records(_ query: SQL, of app: AppID) async throws(PostgresError) -> [RegistrationRecord] {
        try await database.query(query).compactMap { HistoryEntry($0, tokens, of: app).record }
    }

    static func possession(of installation: Installation, by user: UserID) -> SQL {
        """
        SELECT \(RegistrationRecord.columns) FROM registry.registration r
        WHERE r.app = \(installation.app.rawValue) AND r.installation = \(installation.id.rawValue)
            AND r.user_id = \(user.rawValue) AND r.state = 'active' AND r.fallback_until IS NULL
        ORDER BY r.kind, r.scope, r.device_id
        """
    }

    static func possessions(of user: AppUser) -> SQL {
        """
        SELECT \(RegistrationRecord.columns) FROM registry.registration r
        WHERE r.app = \(user.app.rawValue) AND r.user_id = \(user.user.rawValue) AND r.state = 'active'
            AND r.fallback_until IS NULL
        ORDER BY r.installation NULLS LAST, r.kind, r.scope, r.device_id
        """
    }

    /// Keeps the registration tokens that an installation names no more beside a FID of its own, as fallbacks: from the first
    /// time for 30 days, described as the FID is. Returns their ids.
    ///
    /// - Parameter taken: what the installation names.
    static func fallbacks(
        on installation: Installation, of user: UserID, beside taken: [UUID], at moment: Timestamp?
    ) -> SQL {
        """
        UPDATE registry.registration r SET
            fallback_until = coalesce(r.fallback_until, m.at + \(FIDCohortRule.fallback)::interval),
            locale = f.locale, time_zone = f.time_zone, app_version = f.app_version, platform = f.platform
        FROM registry.registration f, (
            SELECT least(coalesce(\(moment?.date)::timestamptz, statement_timestamp()), statement_timestamp()) AS at
        ) AS m
        WHERE f.app = \(installation.app.rawValue) AND f.installation = \(installation.id.rawValue)
            AND f.user_id = \(user.rawValue) AND f.state = 'active' AND f.kind = 'fid'
            AND f.device_id = ANY (\(taken)::uuid[])
            AND r.app = f.app AND r.installation = f.installation AND r.user_id = f.user_id AND r.state = 'active'
            AND r.provider = 'fcm' AND coalesce(r.kind, 'fcm-token') = 'fcm-token'
            AND r.device_id <> ALL (\(taken)::uuid[]) AND coalesce(r.fallback_until > m.at, true)
        RETURNING r.device_id
        """
    }

    /// How a registration on an installation comes to be signed out.
    enum Departure {
        /// Its user has left the installation.
        case left
        /// The installation has it no more, and still its user.
        case dropped

        fileprivate var reason: String {
            switch self {
            case .left: "unregistered"
            case .dropped: "the installation dropped it"
            }
        }

        /// What is signed out by it. What ended otherwise and is merely dropped stays what it is: whoever takes it over takes
        /// it from its user, whose pushes may be under way to it.
        fileprivate var states: [String] {
            let states: [RegistrationState] =
                switch self {
                case .left: [.active, .signedOut, .evicted, .stale]
                case .dropped: [.active]
                }
            return states.map(\.rawValue)
        }
    }

    /// The moment is kept where a registration has ended already, too, as for ``departure(_:)``: a late one from before it
    /// must not undo it.
    static func ending(
        _ installation: Installation, of user: UserID, except kept: [UUID], at moment: Timestamp?,
        _ departure: Departure
    ) -> SQL {
        """
        UPDATE registry.registration r SET
            state = CASE WHEN r.state = ANY (\(departure.states)::text[]) THEN 'signed-out' ELSE r.state END,
            state_reason = CASE WHEN r.state = ANY (\(departure.states)::text[]) THEN \(departure.reason)
                ELSE r.state_reason END,
            state_changed_at = CASE WHEN r.state = 'active' THEN statement_timestamp() ELSE r.state_changed_at END,
            ended_at = least(coalesce(\(moment?.date)::timestamptz, statement_timestamp()), statement_timestamp())
        FROM (
            SELECT device_id FROM registry.registration
            WHERE app = \(installation.app.rawValue) AND installation = \(installation.id.rawValue)
                AND user_id = \(user.rawValue) AND state = 'active'
            UNION ALL
            SELECT device_id FROM registry.registration
            WHERE app = \(installation.app.rawValue) AND user_id = \(user.rawValue) AND state <> 'active'
                AND installation = \(installation.id.rawValue)
        ) AS theirs
        WHERE r.device_id = theirs.device_id AND r.user_id = \(user.rawValue) AND r.state <> 'erased'
            AND r.device_id <> ALL (\(kept)::uuid[])
        RETURNING r.state_changed_at = statement_timestamp()
        """
    }
}

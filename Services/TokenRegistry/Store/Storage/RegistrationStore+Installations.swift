package import Postgres
package import PushProtocol
import FoundationEssentials

extension RegistrationStore {
    /// Replaces an installation's registrations in one transaction. Registers the requests as ``register(_:)`` does,
    /// and ends the user's other registrations there.
    ///
    /// - Parameters:
    ///   - claims: requests of this user and installation, without repeated tokens or repeated kind and scope
    ///     (``InstallationBody/contradiction``).
    ///   - moment: the time at which the others end; `nil`: now.
    /// - Returns: the installation's registrations, and whether the user had none there before.
    package func replace(
        _ installation: Installation, of user: UserID, with claims: [RegistrationRequest], at moment: Timestamp? = nil
    ) async throws -> Replaced {
        let lockNames: Set = [
            AdvisoryLock.user(installation.app, user), AdvisoryLock.installation(installation.app, installation.id),
        ]
        return try await database.transaction { transaction in
            try await transaction.execute(AdvisoryLock.take(lockNames))
            let isNew = try await transaction.query(Self.installationRegistrations(of: installation, by: user)).isEmpty
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
            let records = try await transaction.query(Self.installationRegistrations(of: installation, by: user))
                .compactMap { HistoryEntry($0, tokens, of: installation.app).record }
            return Replaced(records: records, isNew: isNew, changes: registered.arrived.count + ended)
        }
    }

    /// An installation after its replacement.
    package struct Replaced: Hashable, Sendable {
        package var records: [RegistrationRecord]
        /// Whether the user had no registration there before.
        package var isNew: Bool
        /// Registrations that began or ended.
        package var changes: Int
    }

    /// Signs a user out of an installation at `moment`, or now. Registrations of other users stay.
    ///
    /// - Returns: the number of registrations that ended.
    @discardableResult
    package func end(_ installation: Installation, of user: UserID, at moment: Timestamp? = nil) async throws -> Int {
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

    package func registrations(
        on installation: Installation, of user: UserID
    ) async throws(PostgresError) -> [RegistrationRecord] {
        try await records(Self.installationRegistrations(of: installation, by: user), of: installation.app)
    }

    /// Reads a user's registrations in an app, grouped by installation. Registrations without one come last.
    package func registrations(of user: AppUser) async throws(PostgresError) -> [RegistrationRecord] {
        try await records(Self.userRegistrations(of: user), of: user.app)
    }

    /// Returns the readable rows and counts the others (``UnreadableRegistrations``).
    private func records(_ query: SQL, of app: AppID) async throws(PostgresError) -> [RegistrationRecord] {
        try await database.query(query).compactMap { HistoryEntry($0, tokens, of: app).record }
    }

    static func installationRegistrations(of installation: Installation, by user: UserID) -> SQL {
        """
        SELECT \(RegistrationRecord.columns) FROM registry.registration r
        WHERE r.app = \(installation.app.rawValue) AND r.installation = \(installation.id.rawValue)
            AND r.user_id = \(user.rawValue) AND r.state = 'active' AND r.fallback_until IS NULL
        ORDER BY r.kind, r.scope, r.device_id
        """
    }

    static func userRegistrations(of user: AppUser) -> SQL {
        """
        SELECT \(RegistrationRecord.columns) FROM registry.registration r
        WHERE r.app = \(user.app.rawValue) AND r.user_id = \(user.user.rawValue) AND r.state = 'active'
            AND r.fallback_until IS NULL
        ORDER BY r.installation NULLS LAST, r.kind, r.scope, r.device_id
        """
    }

    /// Keeps registration tokens that the installation no longer names as fallbacks of its own FID. They last 30 days
    /// from the first time and copy the FID's device data. Returns their ids.
    ///
    /// - Parameter taken: the registrations that the installation names.
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

    /// The reason for a sign-out on an installation.
    enum Departure {
        /// The user has left the installation.
        case left
        /// The installation no longer names the registration, but keeps its user.
        case dropped

        fileprivate var reason: String {
            switch self {
            case .left: "unregistered"
            case .dropped: "the installation dropped it"
            }
        }

        /// States that become `signed-out`. A dropped registration that ended otherwise keeps its state: pushes to its
        /// user may be in transit when another user takes it over.
        fileprivate var states: [String] {
            let states: [RegistrationState] =
                switch self {
                case .left: [.active, .signedOut, .evicted, .stale]
                case .dropped: [.active]
                }
            return states.map(\.rawValue)
        }
    }

    /// Ends registrations. Also updates the time of ended ones, as ``departure(_:)`` does.
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

package import FoundationEssentials
package import Postgres
package import PushProtocol

/// Stores suspected FIDs and the cohorts whose FIDs are not used. Times are the database's.
package struct FIDStore: Sendable {
    let database: PostgresPool

    package init(_ database: PostgresPool) { self.database = database }

    /// A FID that a provider refused while it accepted a registration token of the same installation.
    package struct RefusedFID: Hashable, Sendable {
        package var app: AppID
        package var device: UUID
        package var at: Timestamp
        package var reason: String

        package init(app: AppID, device: UUID, at: Timestamp, reason: String) {
            self.app = app
            self.device = device
            self.at = at
            self.reason = reason
        }
    }

    /// A cohort whose FIDs have been disabled.
    package struct Halt: Hashable, Sendable {
        package var cohort: FIDPreference.Cohort
        /// Users whose FIDs were refused within a day.
        package var suspected: Int
    }

    package struct Answer: Hashable, Sendable {
        /// FIDs that ended because they had also been refused a day before.
        package var ended: Set<UUID> = []
        /// Cohorts that were not halted before.
        package var halted: [Halt] = []
    }

    /// Ends FIDs that have a registration token beside them and were suspected a day or longer ago. Marks the others as
    /// suspected, then halts cohorts with too many suspected FIDs.
    package func suspect(_ suspicions: [RefusedFID]) async throws -> Answer {
        guard !suspicions.isEmpty else { return Answer() }
        return try await database.transaction { transaction in
            var answer = Answer()
            var cohorts: Set<FIDPreference.Cohort> = []
            for row in try await transaction.query(Self.ending(suspicions)) {
                answer.ended.insert(try row.decode(UUID.self, at: 0))
            }
            for row in try await transaction.query(Self.suspecting(suspicions)) {
                cohorts.insert(
                    .init(app: try row.decode(AppID.self, at: 0), version: try row.decode(String.self, at: 1)))
            }
            for cohort in cohorts.sorted(by: { ($0.app, $0.version) < ($1.app, $1.version) }) {
                let suspected = try await transaction.query(Self.suspected(of: cohort)).single(Int.self)
                guard suspected >= FIDCohortRule.minimum else { continue }
                let limit = FIDCohortRule.mostCounted(suspected)
                let known = try await transaction.query(Self.known(of: cohort, limit: limit)).single(Int.self)
                guard FIDCohortRule.isHalted(suspected: suspected, known: known) else { continue }
                let isNew = try await transaction.query(Self.halting(cohort, suspected)).single(Bool.self)
                if isNew { answer.halted.append(Halt(cohort: cohort, suspected: suspected)) }
            }
            return answer
        }
    }

    /// Reads the halted cohorts. Skips unreadable rows.
    package func halts() async throws(PostgresError) -> FIDPreference {
        var halted: Set<FIDPreference.Cohort> = []
        let query: SQL = "SELECT app, app_version FROM registry.fid_halt WHERE until > statement_timestamp()"
        for row in try await database.query(query) {
            guard let app = AppID(rawValue: try row.decode(String.self, at: 0)) else { continue }
            halted.insert(.init(app: app, version: try row.decode(String.self, at: 1)))
        }
        return FIDPreference(halted: halted)
    }

    private static func given(_ suspicions: [RefusedFID]) -> SQL {
        """
        (SELECT device_id, app, least(max(at), statement_timestamp()) AS at, min(reason) AS reason
        FROM unnest(
            \(suspicions.map(\.device))::uuid[], \(suspicions.map(\.app.rawValue))::text[],
            \(suspicions.map(\.at.date))::timestamptz[], \(suspicions.map(\.reason))::text[]
        ) AS u (device_id, app, at, reason) GROUP BY device_id, app)
        """
    }

    static func ending(_ suspicions: [RefusedFID]) -> SQL {
        """
        UPDATE registry.registration r
        SET state = 'invalidated', state_reason = c.reason, state_changed_at = statement_timestamp(),
            ended_at = greatest(r.registered_at, c.at)
        FROM \(given(suspicions)) AS c
        WHERE r.device_id = c.device_id AND r.app = c.app AND r.state = 'active' AND r.kind = 'fid'
            AND r.suspected_at <= c.at - \(FIDCohortRule.window)::interval
            AND EXISTS (
                SELECT FROM registry.registration t
                WHERE t.app = r.app AND t.installation = r.installation AND t.user_id = r.user_id
                    AND t.state = 'active' AND t.provider = 'fcm' AND coalesce(t.kind, 'fcm-token') = 'fcm-token')
        RETURNING r.device_id
        """
    }

    /// Marks FIDs as suspected. Keeps the first suspicion of a day, since the next day counts from it.
    static func suspecting(_ suspicions: [RefusedFID]) -> SQL {
        """
        UPDATE registry.registration r SET suspected_at = c.at
        FROM \(given(suspicions)) AS c
        WHERE r.device_id = c.device_id AND r.app = c.app AND r.state = 'active' AND r.kind = 'fid'
            AND (r.suspected_at IS NULL OR r.suspected_at <= c.at - \(FIDCohortRule.window)::interval)
        RETURNING r.app, coalesce(r.app_version, '')
        """
    }

    /// Counts users, so that one user's devices cannot halt a cohort.
    static func suspected(of cohort: FIDPreference.Cohort) -> SQL {
        """
        SELECT count(DISTINCT user_id) FROM registry.registration
        WHERE app = \(cohort.app.rawValue) AND kind = 'fid' AND coalesce(app_version, '') = \(cohort.version)
            AND suspected_at IS NOT NULL
            AND suspected_at > statement_timestamp() - \(FIDCohortRule.window)::interval
        """
    }

    /// Counts the cohort's FIDs among at most ``mostLookedAt`` FIDs of the app, to bound the time. No index has the
    /// version, since it changes with each app update.
    static func known(of cohort: FIDPreference.Cohort, limit: Int) -> SQL {
        """
        SELECT count(*) FROM (
            SELECT FROM (
                SELECT app_version FROM registry.registration
                WHERE app = \(cohort.app.rawValue) AND state = 'active' AND kind = 'fid' LIMIT \(mostLookedAt)
            ) AS fid
            WHERE coalesce(app_version, '') = \(cohort.version) LIMIT \(limit)
        ) AS known
        """
    }

    private static let mostLookedAt = 100_000

    /// Halts a cohort. Returns whether it was not halted before.
    private static func halting(_ cohort: FIDPreference.Cohort, _ suspected: Int) -> SQL {
        """
        WITH known AS (
            SELECT FROM registry.fid_halt
            WHERE app = \(cohort.app.rawValue) AND app_version = \(cohort.version) AND until > statement_timestamp()
        ), halt AS (
            INSERT INTO registry.fid_halt AS h (app, app_version, halted_at, until, suspected)
            VALUES (\(cohort.app.rawValue), \(cohort.version), statement_timestamp(),
                statement_timestamp() + \(FIDCohortRule.window)::interval, \(suspected))
            ON CONFLICT (app, app_version) DO UPDATE SET
                halted_at = CASE WHEN h.until > statement_timestamp() THEN h.halted_at ELSE excluded.halted_at END,
                until = excluded.until, suspected = excluded.suspected
        )
        SELECT NOT EXISTS (SELECT FROM known)
        """
    }
}

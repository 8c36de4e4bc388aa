import Postgres
import PushProtocol
import RuleEngine

struct PreferenceStore: Sendable {
    let pool: PostgresPool

    /// A user's settings; the defaults if none are stored. Settings that can be read only in part give the readable
    /// part (``PersonalSettings/stored(_:)``).
    func settings(of person: PersonKey) async throws -> PersonalSettings {
        let rows = try await pool.query(
            """
            SELECT settings FROM rules.person WHERE app = \(person.app.rawValue) AND user_id = \(person.user.rawValue)
            """)
        return try rows.first.map { try Self.settings($0) } ?? PersonalSettings()
    }

    /// Changes a user's preferences. Concurrent changes run one after another. A change also repairs settings that
    /// could be read only in part.
    ///
    /// - Parameter change: may run more than once. If it throws, nothing is changed.
    func change(
        _ person: PersonKey, _ change: @Sendable (PersonalSettings) throws -> PersonalSettings
    ) async throws -> PersonalSettings {
        let (app, user) = (person.app.rawValue, person.user.rawValue)
        return try await pool.transaction { transaction in
            try await transaction.execute(
                "INSERT INTO rules.person (app, user_id) VALUES (\(app), \(user)) ON CONFLICT DO NOTHING")
            let row = try await transaction.query(
                "SELECT settings FROM rules.person WHERE app = \(app) AND user_id = \(user) FOR UPDATE"
            ).first
            let former = try row.map { try Self.settings($0) } ?? PersonalSettings()
            let changed = try change(former)
            let stored = JSONB(utf8: try WireCoding.encode(changed))
            try await transaction.execute(
                """
                UPDATE rules.person SET settings = \(stored), dead_at = NULL, dead_reason = NULL
                WHERE app = \(app) AND user_id = \(user)
                """)
            if changed != former { try await transaction.execute(PreferenceChangeStore.note(person)) }
            return changed
        }
    }

    private static func settings(_ row: PostgresRow) throws(PostgresError) -> PersonalSettings {
        PersonalSettings.stored(try row.decode(JSONB.self, at: 0).text).value
    }
}

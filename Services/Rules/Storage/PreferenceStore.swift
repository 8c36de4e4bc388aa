import Postgres
import PushProtocol

/// What people have chosen.
struct PreferenceStore: Sendable {
    let pool: PostgresPool

    /// A person's settings; the usual ones where none are stored. Of settings that cannot be read whole, the readable part
    /// (``PersonalSettings/stored(_:)``).
    func settings(of person: PersonKey) async throws -> PersonalSettings {
        let rows = try await pool.query(
            """
            SELECT settings FROM rules.person WHERE app = \(person.app.rawValue) AND user_id = \(person.user.rawValue)
            """)
        return try rows.first.map { try Self.settings($0) } ?? PersonalSettings()
    }

    /// Changes what a person has chosen. Of two changes at the same time the second sees the first. Settings that could not be
    /// read whole can be after that.
    ///
    /// - Parameter change: may run more than once; what it throws leaves everything as it was.
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

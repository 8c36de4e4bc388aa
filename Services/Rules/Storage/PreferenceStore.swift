import Postgres
import PushProtocol

/// What people have chosen.
struct PreferenceStore: Sendable {
    let pool: PostgresPool

    /// What a person has chosen; nothing for whoever was never heard of.
    func settings(of person: PersonKey) async throws -> PersonalSettings {
        let rows = try await pool.query(
            """
            SELECT settings FROM rules.person WHERE app = \(person.app.rawValue) AND user_id = \(person.user.rawValue)
            """)
        return try rows.first.map(Self.settings) ?? PersonalSettings()
    }

    /// Changes what a person has chosen. Of two changes at the same time the second sees the first.
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
            let changed = try change(try row.map(Self.settings) ?? PersonalSettings())
            let stored = JSONB(utf8: try WireCoding.encode(changed))
            try await transaction.execute(
                "UPDATE rules.person SET settings = \(stored) WHERE app = \(app) AND user_id = \(user)")
            try await transaction.execute(PreferenceChangeStore.note(person))
            return changed
        }
    }

    private static func settings(_ row: PostgresRow) throws -> PersonalSettings {
        try WireCoding.decode(PersonalSettings.self, from: try row.decode(JSONB.self, at: 0).utf8)
    }
}

import Foundation
import Postgres
import Testing
import TestSupport

@testable import RegistryStore

/// No other service's database role reads or writes the registry's tables.
@Suite(.timeLimit(.minutes(2))) struct OtherRolesTests {
    @Test(arguments: ["heliograph_rules", "heliograph_feedback", "heliograph_events_api"])
    func `no other service's role has access to the registry's tables`(role: String) async throws {
        try await TestSchema.registry.withDatabase { configuration in
            for schema in [TestSchema.rules, .feedback] { try await schema.make(in: configuration) }
            let separator = try TestDatabase.serverURL.contains("?") ? "&" : "?"
            let limited = try PostgresConfiguration(
                url: "\(TestDatabase.serverURL)\(separator)options=-c%20role%3D\(role)", applicationName: "tests"
            ).with(database: configuration.database)
            try await TestDatabase.withPool(configuration) { owner in
                let tables = try await owner.query(
                    "SELECT tablename::text FROM pg_tables WHERE schemaname = 'registry' ORDER BY 1"
                ).map { try $0.decode(String.self, at: 0) }
                #expect(tables.contains("registration") && tables.contains("api_key"))
                try await TestDatabase.withPool(limited) { service async throws in
                    let user = try await service.query("SELECT current_user::text").single(String.self)
                    #expect(user == role)
                    for table in tables {
                        let attempts: [SQL] = [
                            "SELECT FROM registry.\(identifier: table)", "DELETE FROM registry.\(identifier: table)",
                        ]
                        for attempt in attempts {
                            let error = await #expect(throws: PostgresError.self) { try await service.execute(attempt) }
                            #expect(error?.code == .sqlState("42501"), "\(table)")
                        }
                    }
                }
                // Also not with a mistaken grant on the schema.
                let granted = try await owner.query(
                    """
                    SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                    WHERE n.nspname = 'registry' AND c.relkind IN ('r', 'p', 'v', 'm')
                        AND (has_any_column_privilege(\(role), c.oid, 'SELECT, INSERT, UPDATE, REFERENCES')
                            OR has_table_privilege(\(role), c.oid, 'DELETE, TRUNCATE, TRIGGER')
                            OR pg_has_role(\(role), 'heliograph_token_registry', 'MEMBER'))
                    """)
                #expect(granted.isEmpty)
            }
        }
    }
}

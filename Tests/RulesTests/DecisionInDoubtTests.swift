import Foundation
import Postgres
import Testing
import TestSupport

@testable import Rules

/// Transactions whose end is unknown, as after a lost connection.
@Suite(.timeLimit(.minutes(2))) struct DecisionInDoubtTests {
    @Test func `an expired event waits for the end of a decision that is in doubt`() async throws {
        try await TestSchema.rules.withPool { pool in
            let (committed, rolledBack, unknown) = (UUID(), UUID(), UUID())
            let store = DecisionStore(pool: pool)
            for (key, isCommitted) in [(committed, true), (rolledBack, false)] {
                let (inserted, ends) = (Gate(), Gate())
                async let inDoubt: Void? = try? pool.transaction { transaction in
                    try await transaction.execute(
                        """
                        INSERT INTO rules.event (key, app, source, id, type, rule_set, arrived_at)
                        VALUES (\(key), 'test', '/up', 'e', 'thing.happened', \(key), now())
                        """)
                    inserted.open()
                    await ends.pass()
                    if !isCommitted { throw CancellationError() }
                }
                await inserted.pass()
                async let decided = store.decided(among: [key, unknown])
                try await eventually {
                    try await pool.query(
                        """
                        SELECT pid FROM pg_locks JOIN pg_stat_activity USING (pid)
                        WHERE NOT granted AND datname = current_database()
                        """
                    ).count == 1
                }
                ends.open()
                _ = await inDoubt
                #expect(try await decided == (isCommitted ? [key] : []))
            }
            // Nothing of the probe remains.
            let stored = try await pool.query("SELECT key FROM rules.event").map { try $0.decode(UUID.self, at: 0) }
            #expect(stored == [committed])
        }
    }
}

import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RegistryStore

/// `pushctl devices fids` ends halts made by the registry.
@Suite(.timeLimit(.minutes(2))) struct FIDHaltTests {
    @Test func `a halt is listed while in force and ended once`() async throws {
        try await TestSchema.registry.withPool { pool in
            try await pool.execute(
                """
                INSERT INTO registry.fid_halt (app, app_version, halted_at, until, suspected)
                SELECT 'family-portal', version, now() - interval '1 hour', now() + span::interval, 12
                FROM (VALUES ('5.0', '1 hour'), ('', '2 hours'), ('4.0', '-1 second')) AS halt (version, span)
                """)
            let store = FIDStore(pool)
            #expect(try await store.currentHalts().map(\.version) == ["", "5.0"])
            #expect(try await store.currentHalts().map(\.suspected) == [12, 12])
            #expect(try await store.endHalt(of: StoreFixture.app, version: "5.0"))
            #expect(try await !store.endHalt(of: StoreFixture.app, version: "5.0"))
            #expect(try await !store.endHalt(of: StoreFixture.app, version: "4.0"))
            #expect(try await store.currentHalts().map(\.version) == [""])
        }
    }
}

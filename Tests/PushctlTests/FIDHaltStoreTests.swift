import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import Pushctl

/// `pushctl devices fids` ends halts made by the registry.
@Suite(.timeLimit(.minutes(2))) struct FIDHaltStoreTests {
    @Test func `a halt is listed while in force and ended once`() async throws {
        try await ImportStoreTests.withRegistry { pool in
            try await pool.execute(
                """
                INSERT INTO registry.fid_halt (app, app_version, halted_at, until, suspected)
                SELECT 'family-portal', version, now() - interval '1 hour', now() + span::interval, 12
                FROM (VALUES ('5.0', '1 hour'), ('', '2 hours'), ('4.0', '-1 second')) AS halt (version, span)
                """)
            let store = FIDHaltStore(pool)
            #expect(try await store.list().map(\.version) == ["", "5.0"])
            let line = try await store.list().last?.line ?? ""
            #expect(line.hasPrefix("family-portal  5.0  12 people  since ") && line.contains("  until "))
            #expect(try await store.list().first?.line.contains("no version") == true)
            #expect(try await store.end(app: ImportStoreTests.app, version: "5.0"))
            #expect(try await !store.end(app: ImportStoreTests.app, version: "5.0"))
            #expect(try await !store.end(app: ImportStoreTests.app, version: "4.0"))
            #expect(try await store.list().map(\.version) == [""])
        }
    }
}

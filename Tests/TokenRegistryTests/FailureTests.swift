import Hummingbird
import HummingbirdTesting
import Postgres
import PushProtocol
import Synchronization
import Testing
import TestSupport

@testable import RegistryStore

/// Error responses when the registry fails.
@Suite(.timeLimit(.minutes(2))) struct FailureTests {
    /// The status and the error text of a registration.
    private static func answer(after statement: SQL) async throws -> (Int, String) {
        let token = try await BearerKeys.shared([:])
        let answer = Mutex<(Int, String)?>(nil)
        try await RoutesTests.withRoutes { client, store in
            try await store.database.execute(statement)
            try await client.execute(
                uri: "/v1/installations", method: .get, headers: RoutesTests.headers(token)
            ) { response in
                let problem = try RoutesTests.json(response)
                answer.withLock { $0 = (response.status.code, problem["detail"]?.string ?? "") }
            }
        }
        return try #require(answer.withLock { $0 })
    }

    @Test func `an internal error does not ask for a retry`() async throws {
        let (status, words) = try await Self.answer(
            after: "ALTER TABLE registry.registration DROP COLUMN locale CASCADE")
        #expect(status == 500)
        #expect(words.contains("see the service's log"))
    }

    @Test func `a database that lacks resources asks for a retry`() async throws {
        let (status, words) = try await Self.answer(
            after: """
                DO $$ BEGIN
                    ALTER TABLE registry.registration RENAME TO kept;
                    CREATE FUNCTION registry.away() RETURNS boolean STABLE LANGUAGE plpgsql
                        AS 'BEGIN RAISE EXCEPTION ''no memory'' USING ERRCODE = ''53200''; END';
                    CREATE VIEW registry.registration AS SELECT * FROM registry.kept WHERE registry.away();
                END $$
                """)
        #expect(status == 503)
        #expect(words.contains("try again"))
    }
}

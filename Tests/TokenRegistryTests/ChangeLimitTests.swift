import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import NIOCore
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RegistryStore

/// Limits how much of the table one user can fill, and how often a user can have a device revoked.
@Suite(.timeLimit(.minutes(2))) struct ChangeLimitTests {
    private static func body(_ token: String) -> ByteBuffer {
        ByteBuffer(string: #"{"token":"\#(token)","platform":"ios","environment":"production"}"#)
    }

    private static func rows(_ store: RegistrationStore) async throws -> Int {
        try await store.database.query("SELECT count(*) FROM registry.registration").single(Int.self)
    }

    @Test func `a user's changes are limited by day, and repeats do not count`() async throws {
        let (often, other) = (try await BearerKeys.shared([:]), try await BearerKeys.shared(["sub": "other"]))
        let uptime = ManualClock()
        try await RoutesTests.withRoutes(userChanges: 4, uptime: uptime) { client, store in
            func send(_ verb: String, _ token: String, _ bearer: String = often) async throws -> HTTPResponse.Status {
                try await client.execute(
                    uri: "\(RoutesTests.path)/\(verb)", method: .post, headers: RoutesTests.headers(bearer),
                    body: Self.body(token)
                ) { response in
                    #expect((response.headers[.retryAfter] != nil) == (response.status == .tooManyRequests))
                    return response.status
                }
            }
            for _ in 0..<20 { #expect(try await send("register", "aa") == .ok) }
            #expect(try await send("unregister", "aa") == .ok)
            for _ in 0..<20 { #expect(try await send("unregister", "ffff") == .ok) }
            #expect(try await Self.rows(store) == 1)
            #expect(try await send("register", "bb") == .ok)
            #expect(try await send("unregister", "bb") == .ok)
            for verb in ["register", "unregister"] { #expect(try await send(verb, "cc") == .tooManyRequests) }
            for (uri, method) in [
                ("/v1/installations/phone", HTTPRequest.Method.delete), ("/v1/registrations/\(UUID())", .delete),
                ("/v1/installations/phone", .put),
            ] {
                try await client.execute(uri: uri, method: method, headers: RoutesTests.headers(often)) {
                    #expect($0.status == .tooManyRequests)
                }
            }
            #expect(try await Self.rows(store) == 2)
            let events = try await store.database.query(
                "SELECT count(*) FROM registry.outbox WHERE revokes IS NOT NULL")
            #expect(try events.single(Int.self) == 2)
            #expect(try await send("register", "dd", other) == .ok)
            // After a quarter of a day, one change is allowed again.
            uptime.advance(by: .seconds(86_400 / 4))
            #expect(try await send("register", "cc") == .ok)
            #expect(try await send("register", "ee") == .tooManyRequests)
        }
    }

    @Test func `ended registrations beyond the limit are deleted, oldest first, and active ones stay`() async throws {
        try await StoreFixture.withStore { store, pool in
            try await pool.execute(
                """
                INSERT INTO registry.registration (device_id, app, user_id, provider, environment, token, registered_at,
                    state, state_reason, state_changed_at)
                SELECT gen_random_uuid(), 'family-portal', u, 'apns', 'production', u || n, now(), 'signed-out',
                    'unregistered', now() - n * interval '1 minute'
                FROM generate_series(1, \(RegistrationStore.mostEnded + 50)) AS n, unnest('{a,b}'::text[]) AS u
                """)
            try await store.register([StoreFixture.claim("a", "0a")])
            let counts = try await pool.query(
                """
                SELECT count(*) FILTER (WHERE user_id = 'a' AND state <> 'active'),
                    count(*) FILTER (WHERE user_id = 'b'), count(*) FILTER (WHERE state = 'active'),
                    max(replace(token, 'a', '')::integer) FILTER (WHERE user_id = 'a' AND state <> 'active')
                FROM registry.registration
                """)[0]
            #expect(try counts.decode(Int.self, at: 0) == RegistrationStore.mostEnded)
            #expect(try counts.decode(Int.self, at: 1) == RegistrationStore.mostEnded + 50)
            #expect(try counts.decode(Int.self, at: 2) == 1)
            #expect(try counts.decode(Int32.self, at: 3) == Int32(RegistrationStore.mostEnded))
        }
    }
}

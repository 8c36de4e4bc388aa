import Foundation
import HTTPAuth
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import NIOCore
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RegistryStore
@testable import TokenRegistry

/// API keys over HTTP: permissions and limits.
@Suite(.timeLimit(.minutes(2))) struct APIKeyAuthenticatorTests {
    typealias Fixture = StoreFixture

    static func key(_ seed: UInt64) -> APIKey {
        var random = SplitMix(seed: seed)
        return APIKey(using: &random)
    }

    /// Stores a key as `pushctl keys create` does.
    static func keep(
        _ key: APIKey, _ operations: [APIKey.Operation], app: AppID? = Fixture.app, expiresIn seconds: Double? = nil,
        _ pool: PostgresPool
    ) async throws {
        let expiry = seconds.map { Date().addingTimeInterval($0) }
        try await pool.execute(
            """
            INSERT INTO registry.api_key (id, digest, name, app, operations, expires_at)
            VALUES (\(key.id), \(key.digest), 'test', \(app?.rawValue), \(operations.map(\.rawValue)), \(expiry))
            """)
    }

    static let devices = "/v1/operator/devices?app=family-portal&user=a"

    /// The response to a request with this key.
    private func answer(
        _ client: any TestClientProtocol, _ key: String?, _ uri: String = devices, _ method: HTTPRequest.Method = .get
    ) async throws -> (status: HTTPResponse.Status, challenge: String?, body: JSONValue, headers: HTTPFields) {
        try await client.execute(uri: uri, method: method, headers: RoutesTests.headers(key)) { response in
            let body = try RoutesTests.json(response)
            if response.status != .ok {
                #expect(response.headers[.contentType] == "application/problem+json")
                #expect(body["status"]?.int == Int64(response.status.code) && body["detail"]?.string?.isEmpty == false)
            }
            return (response.status, response.headers[.wwwAuthenticate], body, response.headers)
        }
    }

    private func withRoutes(
        keyRequests: Int = 0, uptime: ManualClock = ManualClock(),
        _ body: @escaping @Sendable (any TestClientProtocol, RegistrationStore) async throws -> Void
    ) async throws {
        try await RoutesTests.withRoutes(keyRequests: keyRequests, uptime: uptime, body)
    }

    @Test func `a key is accepted for its operations, and its use is recorded`() async throws {
        try await withRoutes { client, store in
            try await store.register([Fixture.claim("a", "abcd")])
            let key = Self.key(1)
            try await Self.keep(key, [.readDevices], store.database)
            let answer = try await answer(client, key.secret)
            #expect(answer.status == .ok && answer.body["devices"]?.array?.count == 1)
            let used = try await store.database.query(
                "SELECT statement_timestamp() - last_used_at < interval '1 minute' FROM registry.api_key")
            #expect(try used.single(Bool.self))
            #expect(try await self.answer(client, "operator-key").status == .ok)
        }
    }

    @Test func `a wrong, unknown, revoked or expired key gets the same 401`() async throws {
        try await withRoutes { client, store in
            let (known, revoked, over) = (Self.key(1), Self.key(2), Self.key(3))
            try await Self.keep(known, [.readDevices], store.database)
            try await Self.keep(revoked, [.readDevices], store.database)
            try await Self.keep(over, [.readDevices], expiresIn: -1, store.database)
            try await store.database.execute(
                "UPDATE registry.api_key SET revoked_at = now() WHERE id = \(revoked.id)")
            // The known id with another secret.
            let forged = String(known.secret.dropLast()) + (known.secret.last == "0" ? "1" : "0")
            var details: Set<String> = []
            for key in [forged, Self.key(4).secret, revoked.secret, over.secret, "x", known.id] {
                let answer = try await answer(client, key)
                #expect(answer.status == .unauthorized)
                #expect(answer.challenge == #"Bearer error="invalid_token""#)
                details.insert(answer.body["detail"]?.string ?? "")
            }
            #expect(details.count == 1)
            let missing = try await answer(client, nil)
            #expect(missing.status == .unauthorized && missing.challenge == "Bearer")
            // Without a valid key, the response does not say that the request is malformed.
            #expect(try await answer(client, "x", "/v1/operator/devices").status == .unauthorized)
        }
    }

    @Test func `a key for another operation or app gets 403`() async throws {
        try await withRoutes { client, store in
            let (counts, elsewhere, all) = (Self.key(1), Self.key(2), Self.key(3))
            try await Self.keep(counts, [.readCounts, .eraseUsers], store.database)
            try await Self.keep(elsewhere, APIKey.Operation.allCases, app: AppID(rawValue: "other"), store.database)
            try await Self.keep(all, APIKey.Operation.allCases, app: nil, store.database)
            let device = "/v1/operator/devices/\(UUID())/deactivate?app=family-portal"
            let asked: [(String, HTTPRequest.Method, String)] = [
                (Self.devices, .get, "devices:read"), (device, .post, "devices:deactivate"),
            ]
            for (uri, method, scope) in asked {
                let answer = try await answer(client, counts.secret, uri, method)
                #expect(answer.status == .forbidden)
                #expect(answer.challenge == #"Bearer error="insufficient_scope", scope="\#(scope)""#)
            }
            for (uri, method) in [
                (Self.devices, HTTPRequest.Method.get), (Self.devices, .delete), (device, .post),
                ("/v1/operator/counts?app=family-portal", .get), ("/v1/operator/counts", .get),
            ] {
                let answer = try await answer(client, elsewhere.secret, uri, method)
                #expect(answer.status == .forbidden && answer.challenge == #"Bearer error="insufficient_scope""#)
            }
            #expect(try await answer(client, counts.secret, "/v1/operator/counts").status == .forbidden)
            #expect(try await answer(client, counts.secret, "/v1/operator/counts?app=family-portal").status == .ok)
            #expect(try await answer(client, all.secret, "/v1/operator/counts").status == .ok)
        }
    }

    @Test func `too many requests of a key get 429 with Retry-After`() async throws {
        let uptime = ManualClock()
        try await withRoutes(keyRequests: 3, uptime: uptime) { client, store in
            let (key, other) = (Self.key(1), Self.key(2))
            for key in [key, other] { try await Self.keep(key, [.readDevices], store.database) }
            for _ in 0..<3 { #expect(try await answer(client, key.secret).status == .ok) }
            let answer = try await answer(client, key.secret)
            #expect(answer.status == .tooManyRequests && answer.headers[.retryAfter] == "20")
            #expect(try await self.answer(client, other.secret).status == .ok)
            uptime.advance(by: .seconds(20))
            #expect(try await self.answer(client, key.secret).status == .ok)
        }
    }

    @Test func `a deactivated registration is active again once it is registered again`() async throws {
        try await withRoutes { client, store in
            let claim = Fixture.claim("a", "abcd")
            try await store.register([claim])
            let uri = "/v1/operator/devices/\(claim.device.uuidString.lowercased())/deactivate?app="
            for deactivated: JSONValue in [true, false] {
                let answer = try await answer(client, "operator-key", uri + "family-portal", .post)
                #expect(answer.status == .ok)
                #expect(answer.body == ["deactivated": deactivated])
            }
            #expect(try await store.tokens(of: "a").isEmpty)
            #expect(try await store.records(of: Fixture.user("a")).first?.reason == "an operator's word")
            try await store.register([claim])
            #expect(try await store.tokens(of: "a") == ["abcd"])
            #expect(try await answer(client, "operator-key", uri + "other", .post).status == .notFound)
            #expect(try await answer(client, "operator-key", uri, .post).status == .badRequest)
            let nonsense = "/v1/operator/devices/x/deactivate?app=other"
            #expect(try await answer(client, "operator-key", nonsense, .post).status == .badRequest)
        }
    }

    @Test func `devices are counted by app, kind, environment and state`() async throws {
        try await withRoutes { client, store in
            try await store.register([
                Fixture.claim("a", "01"), Fixture.claim("b", "02"), Fixture.claim("a", "03", environment: .development),
                Fixture.claim("a", "t", .fcm, app: AppID(rawValue: "other")!),
            ])
            try await store.unregister([Fixture.claim("b", "02")])
            func counts(_ query: String) async throws -> [String] {
                try await answer(client, "operator-key", "/v1/operator/counts\(query)").body["counts"]?.array?.map {
                    count in
                    let words = ["app", "kind", "environment", "state"].compactMap { count[$0]?.string }
                    return words.joined(separator: " ") + " \(count["count"]?.int ?? 0)"
                } ?? []
            }
            let portal = [
                "family-portal alert production active 1", "family-portal alert production signed-out 1",
                "family-portal alert development active 1",
            ]
            #expect(Set(try await counts("")) == Set(portal + ["other fcm-token production active 1"]))
            #expect(Set(try await counts("?app=family-portal")) == Set(portal))
            #expect(try await counts("?app=none").isEmpty)
        }
    }

    @Test func `counting runs in steps, and its result is cached`() async throws {
        try await Fixture.withStore { store, pool in
            try await store.register((1...57).map { Fixture.claim("u\($0)", "token-\($0)", .fcm) })
            let uptime = ManualClock()
            let registrationCounts = RegistrationCounts(RegistrationCountStore(pool, step: 10)) { uptime.now }
            #expect(try await registrationCounts.figures().counts.map(\.number) == [57])
            try await store.register([Fixture.claim("a", "token-58", .fcm)])
            #expect(try await registrationCounts.figures().counts.map(\.number) == [57])
            uptime.advance(by: RegistrationCounts.lifetime)
            async let one = registrationCounts.figures()
            async let other = registrationCounts.figures()
            #expect(try await one.counts.map(\.number) == [58])
            #expect(try await other.counts.map(\.number) == [58])
        }
    }

    @Test func `unknown keys are looked up once and at a bounded rate, and known keys keep working`() async throws {
        let uptime = ManualClock()
        try await RoutesTests.withRoutes(unknownKeys: 3, uptime: uptime) { client, store in
            let key = Self.key(1)
            try await Self.keep(key, [.readDevices], store.database)
            #expect(try await answer(client, key.secret).status == .ok)
            // Looked up once, however often it is sent.
            for _ in 0..<20 { #expect(try await answer(client, Self.key(2).secret).status == .unauthorized) }
            #expect(try await answer(client, Self.key(3).secret).status == .unauthorized)
            let limited = try await answer(client, Self.key(4).secret)
            #expect(limited.status == .tooManyRequests && limited.headers[.retryAfter] != nil)
            for _ in 0..<5 { #expect(try await answer(client, key.secret).status == .ok) }
            // The same for a known id with another secret.
            let forged = String(key.secret.dropLast()) + (key.secret.last == "0" ? "1" : "0")
            #expect(try await answer(client, forged).status == .tooManyRequests)
            uptime.advance(by: .seconds(60))
            #expect(try await answer(client, Self.key(4).secret).status == .unauthorized)
        }
    }
}

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

/// Requests rejected before they are processed.
@Suite(.timeLimit(.minutes(2))) struct RequestLimitTests {
    private static let installation = "/v1/installations/phone"
    private static let installationBody = ByteBuffer(
        string: #"{"registrations":[{"kind":"fid","token":"f"}]}"#)

    @Test func `a user with too many requests gets Retry-After, and others are served`() async throws {
        let (often, other) = (
            try await BearerKeys.shared([:]), try await BearerKeys.shared(["sub": "other"])
        )
        let uptime = ManualClock()
        try await RoutesTests.withRoutes(userRequests: 2, uptime: uptime) { client, _ in
            func status(_ bearer: String) async throws -> HTTPResponse.Status {
                try await client.execute(
                    uri: "/v1/installations", method: .get, headers: RoutesTests.headers(bearer)
                ) { $0.status }
            }
            #expect(try await status(often) == .ok)
            try await client.execute(
                uri: "\(RoutesTests.path)/register", method: .post, headers: RoutesTests.headers(often),
                body: RoutesTests.body
            ) { #expect($0.status == .ok) }
            try await client.execute(
                uri: Self.installation, method: .put, headers: RoutesTests.headers(often), body: Self.installationBody
            ) { response in
                let answer = try RoutesTests.json(response)
                #expect(response.status == .tooManyRequests && response.headers[.retryAfter] == "30")
                #expect(response.headers[.contentType] == "application/problem+json" && answer["status"] == 429)
            }
            try await client.execute(
                uri: "\(RoutesTests.path)/register", method: .post, headers: RoutesTests.headers(often),
                body: RoutesTests.body
            ) { response in
                let answer = try RoutesTests.json(response)
                #expect(response.status == .tooManyRequests && response.headers[.retryAfter] == "30")
                #expect(answer["success"] == false && answer["error"]?.string?.contains("30 s") == true)
            }
            #expect(try await status(other) == .ok)
            uptime.advance(by: .seconds(30))
            #expect(try await status(often) == .ok)
        }
    }

    @Test func `slow operator statements leave users and the stage their connections`() async throws {
        let keys = try BearerKeys()
        defer { keys.remove() }
        let gate = BearerAuthenticator(try await keys.verifier(), logger: .silent)
        let bearer = try await BearerKeys.shared([:])
        let asOperator = RoutesTests.headers("operator-key")
        try await TestSchema.registry.withDatabase { configuration in
            var small = configuration
            (small.poolSize, small.checkoutTimeout) = (TokenRegistryApp.operatorConnections, .seconds(1))
            try await TestDatabase.withPool(configuration) { pool in
                try await TestDatabase.withPool(small) { operators in
                    let store = RegistrationStore(pool)
                    let api = RegistryAPI(
                        store: store, operators: RegistrationStore(operators), gate: gate,
                        keys: APIKeyAuthenticator(
                            APIKeyStore(operators, schema: "registry"), master: "operator-key",
                            limit: RateLimiter("key", perMinute: 0), logger: .silent))
                    try await Application(router: api.router).test(.router) { client in
                        try await store.register([StoreFixture.claim("a", "01")])
                        let device = try await store.records(of: StoreFixture.user("a"))[0].registration.device
                        let ask: @Sendable () async throws -> Int = {
                            try await client.execute(
                                uri: "/v1/operator/devices/\(device)/deactivate?app=family-portal", method: .post,
                                headers: asOperator
                            ) { $0.status.code }
                        }
                        // A deactivation waits for the row lock.
                        let waiting = try await pool.transaction { transaction in
                            try await transaction.execute("SELECT FROM registry.registration FOR UPDATE")
                            let waiting = (0..<TokenRegistryApp.operatorConnections).map { _ in Task(operation: ask) }
                            try await eventually("operators wait") {
                                let count: Int = try await pool.query(
                                    """
                                    SELECT count(*) FROM pg_stat_activity
                                    WHERE wait_event_type = 'Lock' AND datname = current_database()
                                    """
                                ).single()
                                return count == TokenRegistryApp.operatorConnections
                            }
                            #expect(try await ask() == 503)
                            try await client.execute(
                                uri: "\(RoutesTests.path)/register", method: .post,
                                headers: RoutesTests.headers(bearer), body: RoutesTests.body
                            ) { #expect($0.status == .ok) }
                            try await store.register([StoreFixture.claim("b", "02")])
                            return waiting
                        }
                        for request in waiting { #expect(try await request.value == 200) }
                    }
                }
            }
        }
    }

    @Test func `a body with another content type than JSON gets 415`() async throws {
        let token = try await BearerKeys.shared([:])
        let types: [(String?, Bool)] = [
            ("application/json", true), ("Application/JSON; charset=utf-8", true), (nil, true), ("text/plain", false),
            ("application/x-www-form-urlencoded", false), ("application/jsonp", false), ("", false),
        ]
        try await RoutesTests.withRoutes { client, _ in
            for (type, isTaken) in types {
                var headers = RoutesTests.headers(token)
                headers[.contentType] = type
                try await client.execute(
                    uri: "\(RoutesTests.path)/register", method: .post, headers: headers, body: RoutesTests.body
                ) { response in
                    #expect(response.status == (isTaken ? .ok : .unsupportedMediaType), "\(type ?? "none")")
                }
                try await client.execute(
                    uri: Self.installation, method: .put, headers: headers, body: Self.installationBody
                ) { response in
                    #expect((response.status == .unsupportedMediaType) != isTaken, "\(type ?? "none")")
                }
            }
        }
    }
}

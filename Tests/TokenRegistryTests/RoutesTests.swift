import Foundation
import HTTPAuth
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import NIOCore
import Postgres
import PushProtocol
import ServiceKit
import Testing
import TestSupport

@testable import RegistryStore
@testable import TokenRegistry

@Suite(.timeLimit(.minutes(2))) struct RoutesTests {
    static let path = "/api/notifications/push"

    /// Serves the registry's routes with their own store, with a signing key for the app `shared`.
    static func withRoutes(
        userRequests: Int = 0, keyRequests: Int = 0, unknownKeys: Int = 0, userChanges: Int = 0,
        uptime: ManualClock = ManualClock(), webPush: WebPushTerms = WebPushTerms(),
        _ body: @escaping @Sendable (any TestClientProtocol, RegistrationStore) async throws -> Void
    ) async throws {
        let keys = try BearerKeys()
        defer { keys.remove() }
        let gate = BearerAuthenticator(
            try await keys.verifier(), limit: RateLimiter("user", perMinute: userRequests) { uptime.now },
            logger: .silent)
        try await StoreFixture.withStore { store, pool in
            let limit = RateLimiter<String>("key", perMinute: keyRequests) { uptime.now }
            let api = RegistryAPI(
                store: store, gate: gate,
                keys: APIKeyAuthenticator(
                    APIKeyStore(pool, schema: "registry"), master: "operator-key", limit: limit,
                    unknownKeys: unknownKeys, uptime: { uptime.now }, logger: .silent),
                changes: RateLimiter("changes", userChanges, per: .seconds(86_400)) { uptime.now },
                apps: [AppID(rawValue: "shared")!, StoreFixture.app], webPush: webPush)
            try await Application(router: api.router).test(.router) { client in try await body(client, store) }
        }
    }

    static func headers(_ bearer: String?) -> HTTPFields {
        var headers: HTTPFields = [.contentType: "application/json"]
        if let bearer { headers[.authorization] = "Bearer \(bearer)" }
        return headers
    }

    static let body = ByteBuffer(string: #"{"token":"ABCD","platform":"ios","environment":"development"}"#)

    static func json(_ response: TestResponse) throws -> JSONValue {
        try JSONDecoder().decode(JSONValue.self, from: Data(response.body.readableBytesView))
    }

    @Test func `register and unregister answer as the clients expect`() async throws {
        let token = try await BearerKeys.shared([:])
        let app = try #require(AppID(rawValue: "shared"))
        try await Self.withRoutes { client, store in
            for (verb, tokens) in [("register", ["abcd"]), ("register", ["abcd"]), ("unregister", [])] {
                try await client.execute(
                    uri: "\(Self.path)/\(verb)", method: .post, headers: Self.headers(token), body: Self.body
                ) { response in
                    let answer = try Self.json(response)
                    #expect(response.status == .ok)
                    #expect(answer == ["success": true, "error": nil])
                }
                #expect(try await store.tokens(of: "456", app: app) == tokens)
            }
        }
    }

    @Test func `without a valid token nothing is stored, and the response has the reason`() async throws {
        try await Self.withRoutes { client, store in
            for bearer in [nil, "x", try await BearerKeys.shared(["exp": 1])] {
                try await client.execute(
                    uri: "\(Self.path)/register", method: .post, headers: Self.headers(bearer), body: Self.body
                ) { response in
                    #expect(response.status == .unauthorized)
                    let challenge = bearer == nil ? "Bearer" : #"Bearer error="invalid_token""#
                    #expect(response.headers[.wwwAuthenticate] == challenge)
                    let answer = try Self.json(response)
                    #expect(answer["success"] == false && answer["error"]?.string?.isEmpty == false)
                }
            }
            #expect(try await store.tokens(of: "456", app: AppID(rawValue: "shared")!).isEmpty)
        }
    }

    @Test func `a body that is too large gets 413, a bad one 400`() async throws {
        let token = try await BearerKeys.shared([:])
        try await Self.withRoutes { client, _ in
            for (body, status) in [
                (ByteBuffer(repeating: 0x61, count: 9000), HTTPResponse.Status.contentTooLarge),
                (ByteBuffer(string: "{"), .badRequest),
            ] {
                try await client.execute(
                    uri: "\(Self.path)/register", method: .post, headers: Self.headers(token), body: body
                ) { response in
                    let answer = try Self.json(response)
                    #expect(response.status == status)
                    #expect(answer["success"] == false)
                }
            }
        }
    }

    @Test func `only an operator sees a user's devices, with masked tokens`() async throws {
        let token = try await BearerKeys.shared([:])
        try await Self.withRoutes { client, _ in
            try await client.execute(
                uri: "\(Self.path)/register", method: .post, headers: Self.headers(token), body: Self.body
            ) { #expect($0.status == .ok) }
            let uri = "/v1/operator/devices?app=shared&user=456"
            try await client.execute(uri: uri, method: .get, headers: Self.headers("operator-key")) { response in
                let device = try #require(try Self.json(response)["devices"]?.array?.first)
                #expect(device["state"] == "active" && device["token"] == "abcd… (4 characters)")
            }
            for (bearer, status) in [(nil, HTTPResponse.Status.unauthorized), ("operator-kez", .unauthorized)] {
                try await client.execute(uri: uri, method: .get, headers: Self.headers(bearer)) {
                    #expect($0.status == status)
                }
            }
            try await client.execute(
                uri: "/v1/operator/devices?app=shared", method: .get, headers: Self.headers("operator-key")
            ) { #expect($0.status == .badRequest) }
        }
    }

    @Test func `an operator sees the reason for an unreadable registration, and the other devices`() async throws {
        let app = try #require(AppID(rawValue: "shared"))
        try await Self.withRoutes { client, store in
            try await store.register([StoreFixture.claim("456", "abcd", app: app)])
            try await store.database.execute(
                """
                INSERT INTO registry.registration (device_id, app, user_id, provider, environment, token, kind,
                    registered_at, state_changed_at)
                VALUES ('11111111-1111-4111-8111-111111111111', 'shared', '456', 'apns', 'production', 'ff', 'hologram',
                    now(), now())
                """)
            let uri = "/v1/operator/devices?app=shared&user=456"
            try await client.execute(uri: uri, method: .get, headers: Self.headers("operator-key")) { response in
                #expect(response.status == .ok)
                let devices = try #require(try Self.json(response)["devices"]?.array)
                #expect(devices.count == 2 && devices.contains { $0["token"] == "abcd… (4 characters)" })
                let unreadable = try #require(devices.first { $0["unreadable"] != nil })
                #expect(unreadable["device"] == "11111111-1111-4111-8111-111111111111")
                #expect(unreadable["unreadable"]?.string?.contains("“kind”") == true)
            }
        }
    }

    @Test func `a client with an installation id has its token replaced`() async throws {
        let token = try await BearerKeys.shared([:])
        let app = try #require(AppID(rawValue: "shared"))
        try await Self.withRoutes { client, store in
            var headers = Self.headers(token)
            headers[HTTPField.Name("X-Client-Id")!] = "7d0e0f52-3a30-4a3f-8d3c-0d3bd9a0b7c1"
            for device in ["aa", "bb"] {
                let body = ByteBuffer(string: #"{"token":"\#(device)","platform":"ios","environment":"sandbox"}"#)
                try await client.execute(uri: "\(Self.path)/register", method: .post, headers: headers, body: body) {
                    #expect($0.status == .ok)
                }
            }
            #expect(try await store.tokens(of: "456", app: app) == ["bb"])
            headers[HTTPField.Name("X-Client-Id")!] = "a b"
            try await client.execute(uri: "\(Self.path)/register", method: .post, headers: headers, body: Self.body) {
                let answer = try Self.json($0)
                #expect($0.status == .badRequest)
                #expect(answer["error"]?.string?.contains("X-Client-Id") == true)
            }
        }
    }

    @Test func `only an operator erases a user`() async throws {
        let token = try await BearerKeys.shared([:])
        try await Self.withRoutes { client, store in
            try await client.execute(
                uri: "\(Self.path)/register", method: .post, headers: Self.headers(token), body: Self.body
            ) { #expect($0.status == .ok) }
            let uri = "/v1/operator/devices?app=shared&user=456"
            try await client.execute(uri: uri, method: .delete, headers: Self.headers(token)) {
                #expect($0.status == .unauthorized)
            }
            for erased: JSONValue in [1, 0] {
                try await client.execute(uri: uri, method: .delete, headers: Self.headers("operator-key")) {
                    let answer = try Self.json($0)
                    #expect(answer == ["erased": erased])
                }
            }
            try await client.execute(uri: uri, method: .get, headers: Self.headers("operator-key")) { response in
                let device = try #require(try Self.json(response)["devices"]?.array?.first)
                #expect(device["state"] == "erased" && device["token"] == JSONValue.null)
            }
        }
    }
}

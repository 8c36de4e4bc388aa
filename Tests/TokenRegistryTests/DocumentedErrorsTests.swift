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
import Yams

@testable import RegistryStore
@testable import TokenRegistry

/// Provokes every error documented in `openapi.yaml`, for each operation. A documented error that cannot occur fails,
/// as does one without a request here.
@Suite(.timeLimit(.minutes(5))) struct DocumentedErrorsTests {
    /// An operation and one of its errors.
    struct Documented: Hashable, CustomStringConvertible {
        let operation: String
        let status: Int

        var description: String { "\(operation) \(status)" }
        var isOperators: Bool { operation.contains(" /v1/operator/") }
    }

    struct Ask {
        var method: HTTPRequest.Method
        var uri: String
        var body = ""
        var type = "application/json"
        /// `nil`: the operator key, or the user's token.
        var credential: String?

        init(_ method: HTTPRequest.Method, _ uri: String, _ body: String = "") {
            (self.method, self.uri, self.body) = (method, uri, body)
        }
    }

    /// Campaigns of another app, and of this one: finished.
    private static let taken = "0c0c0c0c-0000-5000-8000-00000000000a"
    private static let finished = "0c0c0c0c-0000-5000-8000-00000000000b"
    private static let campaigns = "/v1/operator/campaigns"
    private static let device = "11111111-2222-3333-4444-555555555555"
    private static let registration = #"{"token":"ABCD","platform":"ios","environment":"development"}"#
    private static let subscription =
        #"{"token":"ABCD","platform":"ios","environment":"development","type":"chat"}"#
    private static let installation = #"{"registrations":[{"kind":"fid","token":"f"}]}"#

    private static func errors() throws -> [Documented] {
        let text = try String(contentsOf: OpenAPITests.file, encoding: .utf8)
        let document = try #require(try Yams.load(yaml: text) as? [String: Any])
        let paths = try #require(document["paths"] as? [String: [String: Any]])
        return paths.flatMap { path, members in
            members.flatMap { method, operation -> [Documented] in
                guard let operation = operation as? [String: Any], let tags = operation["tags"] as? [String],
                    !tags.contains("admin"), let responses = operation["responses"] as? [String: Any]
                else { return [] }
                return responses.keys.compactMap(Int.init).filter { $0 >= 400 }.map {
                    Documented(operation: "\(method.uppercased()) \(path)", status: $0)
                }
            }
        }
    }

    /// A valid request.
    private static func validRequest(_ operation: String) -> Ask? {
        switch operation {
        case "GET /v1/installations": Ask(.get, "/v1/installations")
        case "PUT /v1/installations/{installation}": Ask(.put, "/v1/installations/phone", installation)
        case "GET /v1/installations/{installation}": Ask(.get, "/v1/installations/phone")
        case "DELETE /v1/installations/{installation}": Ask(.delete, "/v1/installations/phone")
        case "DELETE /v1/registrations/{registration}": Ask(.delete, "/v1/registrations/\(device)")
        case "GET /v1/topics": Ask(.get, "/v1/topics")
        case "PUT /v1/topics/{topic}": Ask(.put, "/v1/topics/chat")
        case "DELETE /v1/topics/{topic}": Ask(.delete, "/v1/topics/chat")
        case "POST /api/notifications/push/register": Ask(.post, "\(RoutesTests.path)/register", registration)
        case "POST /api/notifications/push/unregister": Ask(.post, "\(RoutesTests.path)/unregister", registration)
        case "GET /v1/operator/devices": Ask(.get, "/v1/operator/devices?app=family-portal&user=a")
        case "POST /v1/operator/devices":
            Ask(.post, "/v1/operator/devices?app=family-portal&user=a", registration)
        case "POST /v1/operator/devices/unregister":
            Ask(.post, "/v1/operator/devices/unregister?app=family-portal&user=a", registration)
        case "DELETE /v1/operator/devices": Ask(.delete, "/v1/operator/devices?app=family-portal&user=a")
        case "POST /v1/operator/devices/{device}/deactivate":
            Ask(.post, "/v1/operator/devices/\(device)/deactivate?app=family-portal")
        case "GET /v1/operator/campaigns": Ask(.get, "\(campaigns)?app=family-portal")
        case "GET /v1/operator/campaigns/{campaign}": Ask(.get, "\(campaigns)/\(device)?app=family-portal")
        case "PUT /v1/operator/campaigns/{campaign}":
            Ask(
                .put, "\(campaigns)/\(device)?app=family-portal",
                #"{"everyone":true,"content":{"body":"B"}}"#)
        case "POST /v1/operator/campaigns/{campaign}/pause":
            Ask(.post, "\(campaigns)/\(device)/pause?app=family-portal")
        case "POST /v1/operator/campaigns/{campaign}/resume":
            Ask(.post, "\(campaigns)/\(device)/resume?app=family-portal")
        case "POST /v1/operator/campaigns/{campaign}/cancel":
            Ask(.post, "\(campaigns)/\(device)/cancel?app=family-portal")
        case "GET /v1/operator/counts": Ask(.get, "/v1/operator/counts?app=family-portal")
        default: nil
        }
    }

    /// A request that gets the error; `nil` if the test has none for it.
    private static func failingRequest(_ error: Documented) async throws -> Ask? {
        guard var ask = validRequest(error.operation) else { return nil }
        switch (error.status, error.operation) {
        case (400, "GET /v1/operator/devices"), (400, "DELETE /v1/operator/devices"):
            ask.uri = "/v1/operator/devices?user=a"
        case (400, "GET /v1/operator/campaigns"): ask.uri = campaigns
        case (400, "GET /v1/operator/counts"): ask.uri = "/v1/operator/counts?app=No+App"
        case (400, _) where !ask.body.isEmpty: ask.body = "{"
        case (400, _):
            ask.uri = ask.uri.replacing("phone", with: "a%20b").replacing("chat", with: "a%20b")
                .replacing(device, with: "7")
        case (401, _): ask.credential = ""
        case (403, _) where error.isOperators: ask.credential = APIKeyAuthenticatorTests.key(2).secret
        case (403, _): ask.credential = try await BearerKeys.shared(["sub": ""])
        case (404, "GET /v1/installations/{installation}"), (404, "POST /v1/operator/devices/{device}/deactivate"):
            break
        case (404, "PUT /v1/operator/campaigns/{campaign}"):
            ask.uri = ask.uri.replacing("app=family-portal", with: "app=unknown")
        case (404, _) where ask.uri.hasPrefix(campaigns): break
        case (409, "PUT /v1/operator/campaigns/{campaign}"): ask.uri = ask.uri.replacing(device, with: taken)
        case (409, _): ask.uri = ask.uri.replacing(device, with: finished)
        case (404, "POST /v1/operator/devices"), (404, "POST /v1/operator/devices/unregister"):
            ask.uri = ask.uri.replacing("app=family-portal", with: "app=unknown")
        case (413, _): ask.body = "{\"x\":\"\(String(repeating: "a", count: InstallationBody.maximumSize))\"}"
        case (415, _): ask.type = "text/plain"
        case (422, "PUT /v1/installations/{installation}"):
            ask.body = #"{"registrations":[{"kind":"fid","token":"x"},{"kind":"fid","token":"y"}]}"#
        case (422, "PUT /v1/topics/{topic}"): break
        case (422, "POST /api/notifications/push/register"): ask.body = subscription
        case (422, "POST /v1/operator/devices"):
            ask.uri = "/v1/operator/devices?app=shared&user=456"
            ask.body = subscription
        case (429, _), (500, _), (503, _): break
        default: return nil
        }
        return ask
    }

    /// Sends the request and checks the common members of errors.
    private static func expect(_ error: Documented, _ client: any TestClientProtocol) async throws {
        guard let ask = try await failingRequest(error) else {
            Issue.record("no request for \(error)")
            return
        }
        let usual = error.isOperators ? APIKeyAuthenticatorTests.key(1).secret : try await BearerKeys.shared([:])
        let credential = ask.credential ?? usual
        var headers = RoutesTests.headers(credential.isEmpty ? nil : credential)
        headers[HTTPField.Name.contentType] = ask.type
        try await client.execute(
            uri: ask.uri, method: ask.method, headers: headers,
            body: ask.body.isEmpty ? nil : ByteBuffer(string: ask.body)
        ) { response in
            #expect(response.status.code == error.status, "\(error)")
            let body = try RoutesTests.json(response)
            let words = body["detail"]?.string ?? body["error"]?.string
            #expect(words?.isEmpty == false, "\(error)")
            if error.operation.contains(RoutesTests.path) {
                #expect(body["success"] == false, "\(error)")
            } else {
                #expect(response.headers[HTTPField.Name.contentType] == "application/problem+json", "\(error)")
                #expect(body["status"] == .int(Int64(error.status)), "\(error)")
            }
            #expect((response.headers[.wwwAuthenticate] != nil) == [401, 403].contains(error.status), "\(error)")
            #expect((response.headers[.retryAfter] != nil) == [429, 503].contains(error.status), "\(error)")
        }
    }

    /// Provides one key with all permissions, and one for another app.
    private static func withKeys(
        requests: Int = 0, _ body: @escaping @Sendable (any TestClientProtocol, PostgresPool) async throws -> Void
    ) async throws {
        try await RoutesTests.withRoutes(userRequests: requests, keyRequests: requests) { client, store in
            let everything = APIKey.Operation.allCases
            try await APIKeyAuthenticatorTests.keep(
                APIKeyAuthenticatorTests.key(1), everything, app: nil, store.database)
            let other = AppID(rawValue: "other")
            try await APIKeyAuthenticatorTests.keep(
                APIKeyAuthenticatorTests.key(2), everything, app: other, store.database)
            try await body(client, store.database)
        }
    }

    @Test func `each error by a caller occurs`() async throws {
        let errors = try Self.errors()
        #expect(errors.count > 80)
        try await Self.withKeys { client, pool in
            try await pool.execute(
                """
                INSERT INTO registry.membership (app, kind, name, user_id, active, at)
                SELECT 'shared', 'topic', 'topic-' || n, '456', true, now()
                FROM generate_series(1, \(MembershipStore.mostGroups)) AS n
                """)
            try await pool.execute(
                """
                INSERT INTO registry.campaign (id, app, rule, notification, audience, state, finished_at)
                VALUES (\(Self.taken)::uuid, 'other', 'r', '', 'everyone', 'done', now()),
                    (\(Self.finished)::uuid, 'family-portal', 'r', '', 'everyone', 'done', now())
                """)
            for error in errors where ![429, 500, 503].contains(error.status) { try await Self.expect(error, client) }
        }
    }

    @Test func `each rate limit error occurs`() async throws {
        try await Self.withKeys(requests: 1) { client, _ in
            for ask in ["/v1/topics", "/v1/operator/counts?app=family-portal"] {
                let isOperators = ask.contains("operator")
                let bearer = isOperators ? APIKeyAuthenticatorTests.key(1).secret : try await BearerKeys.shared([:])
                let status = try await client.execute(uri: ask, method: .get, headers: RoutesTests.headers(bearer)) {
                    $0.status
                }
                #expect(status == .ok)
            }
            for error in try Self.errors() where error.status == 429 { try await Self.expect(error, client) }
        }
    }

    @Test func `each internal error occurs`() async throws {
        try await Self.withKeys { client, pool in
            try await pool.execute("ALTER TABLE registry.registration RENAME TO elsewhere")
            try await pool.execute("ALTER TABLE registry.membership RENAME TO elsewhere_too")
            try await pool.execute("ALTER TABLE registry.campaign RENAME TO elsewhere_as_well")
            for error in try Self.errors() where error.status == 500 { try await Self.expect(error, client) }
        }
    }

    @Test func `each error occurs while the database is away`() async throws {
        let nowhere = try PostgresConfiguration(
            url: "postgresql://nobody@127.0.0.1:1/nothing", checkoutTimeout: .milliseconds(20), applicationName: "test")
        let pool = PostgresPool(configuration: nowhere, logger: .silent)
        let keys = try BearerKeys()
        defer { keys.remove() }
        let limit = RateLimiter<String>("key", perMinute: 0)
        let api = RegistryAPI(
            store: RegistrationStore(pool, devicesPerUser: 100),
            gate: BearerAuthenticator(try await keys.verifier(), logger: .silent),
            keys: APIKeyAuthenticator(APIKeyStore(pool, schema: "registry"), master: nil, limit: limit, logger: .silent)
        )
        try await Application(router: api.router).test(.router) { client in
            for error in try Self.errors() where error.status == 503 { try await Self.expect(error, client) }
        }
    }
}

import HTTPAuth
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import Testing

/// CORS for web clients, as WHATWG Fetch §3.2 describes it.
@Suite struct CrossOriginTests {
    private static let listed = "https://portal.example"

    /// Sends a request to a router with `GET /known` and its 405 routes.
    private func send(
        _ method: HTTPRequest.Method, _ path: String = "/known", origin: String?, asking asked: String? = nil
    ) async throws -> (status: HTTPResponse.Status, headers: HTTPFields) {
        let router = Router(context: BasicRequestContext.self)
        router.add(middleware: CrossOriginMiddleware(isListed: { $0 == Self.listed }))
        router.get("known") { _, _ in "text" }
        router.addMethodNotAllowedRoutes()
        var headers = HTTPFields()
        headers[.origin] = origin
        headers[.accessControlRequestMethod] = asked
        return try await Application(router: router).test(.router) { [headers] client in
            try await client.execute(uri: path, method: method, headers: headers) { ($0.status, $0.headers) }
        }
    }

    @Test func `a preflight request of a listed origin is answered before the routes`() async throws {
        for path in ["/known", "/unknown"] {
            let (status, headers) = try await send(.options, path, origin: Self.listed, asking: "PATCH")
            #expect(status == .noContent)
            #expect(headers[.accessControlAllowOrigin] == Self.listed && headers[.vary] == "Origin")
            #expect(headers[.accessControlAllowMethods]?.contains("PATCH") == true)
            #expect(headers[.accessControlAllowHeaders]?.contains("Authorization") == true)
            #expect(headers[.accessControlAllowCredentials] == nil)
        }
    }

    @Test func `a preflight request of another origin is refused`() async throws {
        for origin in ["https://other.example", "null"] {
            let (status, headers) = try await send(.options, origin: origin, asking: "GET")
            #expect(status == .forbidden && headers[.accessControlAllowOrigin] == nil)
        }
    }

    @Test func `only a listed origin may read a response, also that of an error`() async throws {
        for (path, status) in [("/known", HTTPResponse.Status.ok), ("/unknown", .notFound)] {
            let answer = try await send(.get, path, origin: Self.listed)
            #expect(answer.status == status && answer.headers[.accessControlAllowOrigin] == Self.listed)
            #expect(answer.headers[.vary] == "Origin")
            let other = try await send(.get, path, origin: "https://other.example")
            #expect(other.status == status && other.headers[.accessControlAllowOrigin] == nil)
            // A cache must not give this answer to a listed origin.
            #expect(other.headers[.vary] == "Origin")
            #expect(try await send(.get, path, origin: nil).headers[.vary] == nil)
        }
    }

    @Test func `OPTIONS without a preflight's header is answered as without CORS`() async throws {
        #expect(try await send(.options, origin: Self.listed).status == .methodNotAllowed)
    }
}

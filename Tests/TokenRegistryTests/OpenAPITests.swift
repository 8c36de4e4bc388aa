import Foundation
import HTTPAuth
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import NIOCore
import PushProtocol
import Testing
import TestSupport
import Yams

@testable import RegistryStore
@testable import TokenRegistry

/// `openapi.yaml` matches the router. schemathesis checks the responses.
@Suite(.timeLimit(.minutes(2))) struct OpenAPITests {
    static let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Services/TokenRegistry/Service/API/openapi.yaml")

    /// `METHOD /path` of each operation, and its tags.
    private static func operations() throws -> [String: [String]] {
        let document = try #require(try Yams.load(yaml: String(contentsOf: file, encoding: .utf8)) as? [String: Any])
        let paths = try #require(document["paths"] as? [String: [String: Any]])
        var operations: [String: [String]] = [:]
        for (path, members) in paths {
            for (method, operation) in members where method != "parameters" {
                let operation = try #require(operation as? [String: Any])
                operations["\(method.uppercased()) \(path)"] = operation["tags"] as? [String]
            }
        }
        return operations
    }

    @Test func `every route is documented, and every documented route exists`() async throws {
        let described = try Self.operations().filter { !$0.value.contains("admin") }.keys
        let keys = try BearerKeys()
        defer { keys.remove() }
        let gate = BearerAuthenticator(try await keys.verifier(), logger: .silent)
        try await StoreFixture.withStore { store, pool in
            let keys = APIKeyAuthenticator(
                APIKeyStore(pool, schema: "registry"), master: nil, limit: RateLimiter("key", perMinute: 0),
                logger: .silent)
            let routes = RegistryAPI(store: store, gate: gate, keys: keys).routes.routes
            #expect(Set(routes.map { "\($0.method) \($0.path)" }) == Set(described))
            #expect(routes.count == 23)
        }
    }

    @Test func `every body has an example, and its schema accepts the example`() throws {
        let parsed = try #require(try Yams.load(yaml: String(contentsOf: Self.file, encoding: .utf8)))
        let document = try #require(JSONValue(parsed: parsed))
        #expect(OpenAPIExamples.problems(in: document) == [])
    }

    @Test func `the document is served unchanged`() async throws {
        let written = try Data(contentsOf: Self.file)
        try await RoutesTests.withRoutes { client, _ in
            try await client.execute(uri: "/openapi.yaml", method: .get) { response in
                #expect(response.status == .ok)
                #expect(response.headers[.contentType] == "application/yaml")
                #expect(Data(response.body.readableBytesView) == written)
            }
        }
    }

    @Test func `a wrong method gets 405 with the allowed methods`() async throws {
        try await RoutesTests.withRoutes { client, _ in
            for (uri, method, allowed) in [
                ("/v1/installations/phone", HTTPRequest.Method.post, "DELETE, GET, PUT"),
                ("/api/notifications/push/register", .get, "POST"), ("/openapi.yaml", .delete, "GET"),
            ] {
                try await client.execute(uri: uri, method: method) { response in
                    #expect(response.status == .methodNotAllowed)
                    #expect(response.headers[.allow] == allowed)
                }
            }
            try await client.execute(uri: "/v2", method: .get) { #expect($0.status == .notFound) }
        }
    }

    @Test func `the documented limits are those of the code`() throws {
        let text = try String(contentsOf: Self.file, encoding: .utf8)
        #expect(text.contains("At most \(InstallationBody.maximumSize) bytes"))
        #expect(text.contains("At most \(RegistrationBody.maximumSize) bytes"))
        #expect(text.contains("maxItems: \(InstallationBody.maximumRegistrations)\n"))
        let document = try #require(try Yams.load(yaml: text) as? [String: Any])
        let schemas = try #require((document["components"] as? [String: Any])?["schemas"] as? [String: [String: Any]])
        let kinds = ["APNsKind", "FCMKind", "WebPushKind"].flatMap { schemas[$0]?["enum"] as? [String] ?? [] }
        #expect(kinds == RegistrationKind.allCases.map(\.rawValue))
    }
}

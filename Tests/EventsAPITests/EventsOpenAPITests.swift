import AMQP
import Foundation
import HTTPAuth
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import NIOCore
import Postgres
import PushProtocol
import ServiceKit
import Synchronization
import Testing
import TestSupport
import Yams

@testable import EventsAPI

/// `openapi.yaml` and the routes describe the same. Every documented error occurs. Schemathesis checks the responses.
@Suite(.enabled(if: TestDatabase.isAvailable, "needs a database"), .timeLimit(.minutes(3))) struct EventsOpenAPITests {
    static let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Services/EventsAPI/API/openapi.yaml")

    /// The documented statuses of each operation.
    static func operations() throws -> [String: Set<Int>] {
        let document = try #require(try Yams.load(yaml: String(contentsOf: file, encoding: .utf8)) as? [String: Any])
        let paths = try #require(document["paths"] as? [String: [String: Any]])
        var operations: [String: Set<Int>] = [:]
        for (path, members) in paths {
            for (method, operation) in members where method != "parameters" {
                let responses = try #require((operation as? [String: Any])?["responses"] as? [String: Any])
                operations["\(method.uppercased()) \(path)"] = Set(responses.keys.compactMap(Int.init))
            }
        }
        return operations
    }

    @Test func `every route is described, and every described route exists`() async throws {
        try await EventsHTTP.with { http async throws in
            let routes = http.api.routes.routes.map { "\($0.method) \($0.path)" }
            #expect(Set(routes) == Set(try Self.operations().keys))
        }
    }

    @Test func `every request and every answer other than an error has an example`() throws {
        let document = try #require(
            try Yams.load(yaml: String(contentsOf: Self.file, encoding: .utf8)) as? [String: Any])
        let paths = try #require(document["paths"] as? [String: [String: Any]])
        var contents: [(String, [String: Any])] = []
        for (path, members) in paths {
            for (method, operation) in members {
                let operation = try #require(operation as? [String: Any])
                if let body = operation["requestBody"] as? [String: Any] {
                    contents.append(("\(method) \(path)", try #require(body["content"] as? [String: Any])))
                }
                for (status, response) in try #require(operation["responses"] as? [String: Any])
                where status.hasPrefix("2") {
                    let response = try #require(response as? [String: Any])
                    contents.append(
                        ("\(method) \(path) \(status)", try #require(response["content"] as? [String: Any])))
                }
            }
        }
        #expect(contents.count >= 5)
        for (place, types) in contents {
            for (type, content) in types {
                let members = try #require(content as? [String: Any])
                #expect(members["example"] != nil || members["examples"] != nil, "\(place) \(type)")
            }
        }
    }

    @Test func `the file is served unchanged, and other methods get 405 with Allow`() async throws {
        let written = try Data(contentsOf: Self.file)
        try await EventsHTTP.with { http async throws in
            try await http.client.execute(uri: "/openapi.yaml", method: .get) { response in
                #expect(Data(response.body.readableBytesView) == written)
            }
            try await http.client.execute(uri: "/v1/events", method: .get) { response in
                #expect(response.status == .methodNotAllowed && response.headers[.allow] == "POST")
            }
        }
    }

    @Test func `the documented limits equal those in the code`() throws {
        let text = try String(contentsOf: Self.file, encoding: .utf8)
        for limit in [
            "At most \(WireCoding.maximumBodySize) bytes", "at most \(EventReader.maximumBatch) events",
            "maxItems: \(EventReader.maximumBatch)", "up to \(WaitTime.maximum.components.seconds) s",
            "at most \(WaitTime.maximumEvents) events", "maxLength: \(CloudEvents.maximumNameLength)",
            "maxLength: \(CloudEvents.maximumAttributeLength)", "nest \(CloudEvents.maximumDataDepth) levels",
            "1 to \(IdempotencyKey.maximumLength) visible",
            "At most \(MatrixRoutes.maximumBody) bytes", "maxItems: \(MatrixNotify.maximumDevices)",
        ] {
            #expect(text.contains(limit), "\(limit)")
        }
        let batch = ConfigurationKey.eventsBatchBytes.defaultValue ?? ""
        #expect(text.contains("EVENTS_API_BATCH_BYTES\n          (\(batch)) bytes"))
    }

    /// The statuses of requests to `POST /v1/events`, one for each documented status but 500 and 503.
    private static func statuses(_ http: EventsHTTP) async throws -> Set<Int> {
        let (key, every) = (try await http.key(1), try await http.key(2, app: nil))
        let long = String(repeating: "a", count: WireCoding.maximumBodySize)
        return [
            try await http.post(event(), key: key, uri: "/v1/events?wait=0s").status,
            try await http.post(event(), key: key).status,
            try await http.post("[{},\(event())]", type: ContentMode.batchContentType, key: key).status,
            try await http.post("{", key: key).status,
            try await http.post(event(), key: nil).status,
            try await http.post(event(), key: key, ["Heliograph-App": "other"]).status,
            try await http.post(event(), key: every, ["Heliograph-App": "unknown"]).status,
            try await http.post(event(data: "\"\(long)\""), key: key).status,
            try await http.post(event(), type: "text/plain", key: key).status,
        ]
    }

    @Test func `every documented status occurs, and no other`() async throws {
        let found = Mutex<Set<Int>>([])
        try await EventsHTTP.with { http async throws in
            let statuses = try await Self.statuses(http)
            found.withLock { $0.formUnion(statuses) }
            http.bus.answer(publishesTo: .events, with: [.nacked])
            let unavailable = try await http.post(event(), key: try await http.key(3)).status
            try await http.owner.execute("ALTER TABLE rules.api_key RENAME TO elsewhere")
            let failed = try await http.post(event(), key: Self.anyKey).status
            found.withLock { $0.formUnion([unavailable, failed]) }
        }
        try await EventsHTTP.with(requests: 1) { http async throws in
            let key = try await http.key()
            _ = try await http.post(event(), key: key)
            let limited = try await http.post(event(), key: key).status
            found.withLock { _ = $0.insert(limited) }
        }
        #expect(found.withLock(\.self) == (try Self.operations()["POST /v1/events"]))
    }

    /// A well-formed key, which the service looks up.
    static var anyKey: String {
        var random = SplitMix(seed: 9)
        return APIKey(using: &random).secret
    }

    @Test func `without the database the answer is 503`() async throws {
        let nowhere = try PostgresConfiguration(
            url: "postgresql://nobody@127.0.0.1:1/nothing", checkoutTimeout: .milliseconds(20), applicationName: "test")
        let limit = RateLimiter<String>("key", perMinute: 0)
        try await EventsHTTP.with { http async throws in
            let callers = PublisherAuthenticator(
                keys: APIKeyAuthenticator(
                    APIKeyStore(PostgresPool(configuration: nowhere, logger: .silent), schema: "rules"), master: nil,
                    limit: limit, logger: .silent), limit: limit, isConfigured: { _ in true })
            let api = PublishingAPI(
                callers: callers, delivery: http.api.delivery, budget: http.api.budget, batchLimit: 1 << 20)
            try await Application(router: api.router).test(.router) { client in
                let headers: HTTPFields = [.authorization: "Bearer \(Self.anyKey)"]
                try await client.execute(uri: "/v1/events", method: .post, headers: headers) { response in
                    #expect(response.status == .serviceUnavailable && response.headers[.retryAfter] != nil)
                }
            }
            #expect(http.bus.published.isEmpty)
        }
    }
}

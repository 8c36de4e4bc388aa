import Foundation
import HTTPAuth
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import Logging
import NIOCore
import Postgres
import PushProtocol
import ServiceKit
import ServiceLifecycle
import Testing
import TestSupport

@testable import Rules

/// The user API of rules on its own database.
struct RulesHTTP: Sendable {
    let fixture: DecisionStoreTests.DecisionFixture
    let client: any TestClientProtocol
    let api: RulesAPI
    /// Bearer tokens by user.
    let bearers: [String: String]

    static let app = AppID(rawValue: "test")!
    static let users = ["1", "2"]

    var pool: PostgresPool { fixture.pool }
    var clock: DecisionStoreTests.Clock { fixture.clock }
    var inboxFeed: InboxFeed { api.inboxFeed }

    /// - Parameter rules: the rule file of the app `test`. Its users 1 and 2 have bearer tokens.
    static func with(
        _ rules: String = DecisionStoreTests.rules, uptime: ManualClock = ManualClock(),
        operatorPatience: Duration = .seconds(60), reporter: ReceiptReporter? = nil,
        _ body: @escaping @Sendable (RulesHTTP) async throws -> Void
    ) async throws {
        let keys = try BearerKeys()
        defer { keys.remove() }
        let gate = BearerAuthenticator(try await keys.verifier(for: app), logger: .silent)
        var bearers: [String: String] = [:]
        for user in users { bearers[user] = try await BearerKeys.shared(["sub": .string(user)]) }
        try await RulesDatabase.withPools(patience: operatorPatience) { [bearers] pool, operators in
            let fixture = try DecisionStoreTests.DecisionFixture(pool, rules: rules)
            let clock = fixture.clock
            let currentRules = CurrentRules(fixture.ruleSets)
            let inboxFeed = InboxFeed(
                store: InboxFeedStore(pool: pool), currentRules: currentRules, now: { clock.now },
                uptime: { uptime.now }, logger: .silent)
            let keys = APIKeyAuthenticator(
                APIKeyStore(operators, schema: "rules"), master: nil, limit: RateLimiter("key", perMinute: 0),
                logger: .silent)
            let api = RulesAPI(
                pool: pool, operators: operators, currentRules: currentRules, gate: gate, keys: keys,
                inboxFeed: inboxFeed, now: { clock.now }, receiptReporter: reporter)
            try await Application(router: api.router).test(.router) { client in
                try await body(RulesHTTP(fixture: fixture, client: client, api: api, bearers: bearers))
            }
        }
    }

    /// Serves the routes on a free port of 127.0.0.1 as a process does, until `body` ends or stops the group.
    ///
    /// - Parameter services: services that start before the server and stop after it.
    func serve(
        _ services: [any Service] = [], connections: Int = HTTPServerLimits.defaultConnections,
        requestTimeout: TimeAmount = ConnectionGuard.timeout, _ body: (Int, ServiceGroup) async throws -> Void
    ) async throws {
        let port = try FreePort.any()
        let settings = try Settings.load(
            keys: [.rulesHost, .rulesPort], environment: ["RULES_HOST": "127.0.0.1", "RULES_PORT": "\(port)"])
        let context = ServiceContext(name: "rules", settings: settings, logger: .silent, readiness: Readiness())
        let server = try context.server(
            api.router, host: .rulesHost, port: .rulesPort, connections: connections, requestTimeout: requestTimeout)
        let group = ServiceGroup(services: services + [server], logger: .silent)
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            try await eventually("the server") { LoopbackPort.isOpen(port) }
            try await body(port, group)
            await group.triggerGracefulShutdown()
            try await tasks.waitForAll()
        }
    }

    /// Sends a request and returns the status, and the body if it is JSON.
    func send(
        _ method: HTTPRequest.Method, _ uri: String, _ body: JSONValue? = nil, user: String? = "1",
        type: String = "application/json"
    ) async throws -> (status: Int, body: JSONValue) {
        var headers = HTTPFields()
        if let user { headers[.authorization] = "Bearer \(bearers[user] ?? user)" }
        var buffer: ByteBuffer?
        if let body {
            headers[.contentType] = type
            buffer = ByteBuffer(bytes: try WireCoding.encode(body))
        }
        return try await client.execute(uri: uri, method: method, headers: headers, body: buffer) { response in
            let bytes = Array(response.body.readableBytesView)
            let answer = bytes.isEmpty ? JSONValue.null : (try? WireCoding.decode(JSONValue.self, from: bytes)) ?? .null
            if response.status.code >= 400 {
                #expect(response.headers[.contentType] == "application/problem+json")
                #expect(answer["detail"]?.string?.isEmpty == false)
            }
            return (response.status.code, answer)
        }
    }

    /// A new API key for these operations, stored as `pushctl keys create` does.
    ///
    /// - Parameter app: `nil` for every app.
    func key(_ seed: UInt64, for operations: [APIKey.Operation], app: AppID? = RulesHTTP.app) async throws -> String {
        var random = SplitMix(seed: seed)
        let key = APIKey(using: &random)
        try await pool.execute(
            """
            INSERT INTO rules.api_key (id, digest, name, app, operations)
            VALUES (\(key.id), \(key.digest), 'test', \(app?.rawValue), \(operations.map(\.rawValue)))
            """)
        return key.secret
    }

    /// The item ids on the first page of an inbox, latest first.
    func inbox(_ query: String = "", user: String = "1") async throws -> [String] {
        try await send(.get, "/v1/inbox\(query)", user: user).body["items"]?.array?.compactMap { $0["id"]?.string }
            ?? []
    }

    func unread(user: String = "1") async throws -> Int64? {
        try await send(.get, "/v1/inbox/unread", user: user).body["unread"]?.int
    }
}

import AMQP
import DecisionLog
import Foundation
import HTTPAuth
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import Messaging
import NIOCore
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import EventsAPI

/// The API with a real database, as its own role, and a bus in memory.
struct EventsHTTP: Sendable {
    struct Answer: Sendable {
        var status: Int
        var body: JSONValue
        var headers: HTTPFields
    }

    static let app = AppID(rawValue: "demo")!
    static let other = AppID(rawValue: "other")!
    static let queue = WorkQueue.rulesEvents.name

    let client: any TestClientProtocol
    let api: PublishingAPI
    let owner: PostgresPool
    let bus: InMemoryBus

    /// - Parameters:
    ///   - requests: the events per minute of a key; 0 for no limit.
    ///   - uptime: the clock of the limits of callers.
    ///   - send: replaces the bus.
    static func with(
        requests: Int = 0, budget: Int = 1 << 30, batchLimit: Int = 1 << 20, deadline: Duration = .seconds(60),
        settlingTime: Duration = DecisionWaiter.settlingTime,
        uptime: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        send: Send? = nil,
        _ body: @escaping @Sendable (EventsHTTP) async throws -> Void
    ) async throws {
        let bus = InMemoryBus(apps: [app, other])
        let limit = RateLimiter<String>("key", perMinute: requests, uptime: uptime)
        // The compiler crashes on `send ?? { … }` in the argument.
        let publish: Send
        if let send {
            publish = send
        } else {
            publish = { messages throws(AMQPError) in try await bus.publish(messages) }
        }
        let tokens = try BearerKeys()
        defer { tokens.remove() }
        let users = BearerAuthenticator(try await tokens.verifier(for: app), logger: .silent)
        let publishers = BearerAuthenticator(try await tokens.verifier(for: app, of: .publisher), logger: .silent)
        try await TestSchema.rules.withDatabase { configuration in
            let separator = try TestDatabase.serverURL.contains("?") ? "&" : "?"
            let limited = try PostgresConfiguration(
                url: "\(TestDatabase.serverURL)\(separator)options=-c%20role%3Dheliograph_events_api",
                checkoutTimeout: .seconds(60), applicationName: "tests"
            ).with(database: configuration.database)
            try await TestDatabase.withPool(configuration) { owner in
                try await TestDatabase.withPool(limited) { pool in
                    let delivery = EventDelivery(
                        publisher: EventPublisher(
                            service: "events-api", deadline: deadline, logger: .silent, send: publish),
                        waiter: DecisionWaiter(
                            store: ExplanationStore(pool), settlingTime: settlingTime, logger: .silent))
                    let api = PublishingAPI(
                        callers: PublisherAuthenticator(
                            keys: APIKeyAuthenticator(
                                APIKeyStore(pool, schema: "rules"), master: nil, limit: limit, logger: .silent),
                            tokens: publishers, limit: limit, isConfigured: { [app, other].contains($0) }),
                        delivery: delivery, budget: ByteBudget(budget), batchLimit: batchLimit,
                        testPushes: TestPushRoutes(
                            users: users, limits: TestPushLimits(uptime: uptime), delivery: delivery),
                        isWebOrigin: { $0 == "https://portal.example" })
                    try await Application(router: api.router).test(.router) { client in
                        try await body(EventsHTTP(client: client, api: api, owner: owner, bus: bus))
                    }
                }
            }
        }
    }

    /// Runs `body` with an API whose API keys cannot be read.
    static func withoutDatabase(_ body: @escaping @Sendable (EventsHTTP) async throws -> Void) async throws {
        let nowhere = try PostgresConfiguration(
            url: "postgresql://nobody@127.0.0.1:1/nothing", checkoutTimeout: .milliseconds(20), applicationName: "test")
        try await with { http async throws in
            let callers = http.api.callers
            let keys = APIKeyAuthenticator(
                APIKeyStore(PostgresPool(configuration: nowhere, logger: .silent), schema: "rules"), master: nil,
                limit: callers.limit, logger: .silent)
            let api = PublishingAPI(
                callers: PublisherAuthenticator(
                    keys: keys, tokens: callers.tokens, limit: callers.limit, isConfigured: callers.isConfigured),
                delivery: http.api.delivery, budget: http.api.budget, batchLimit: http.api.batchLimit,
                testPushes: http.api.testPushes)
            try await Application(router: api.router).test(.router) { client in
                try await body(EventsHTTP(client: client, api: api, owner: http.owner, bus: http.bus))
            }
            #expect(http.bus.published.isEmpty)
        }
    }

    /// Stores a key as `pushctl keys create` does, and returns it.
    func key(
        _ seed: UInt64 = 1, for operations: [APIKey.Operation] = [.publishEvents], app: AppID? = Self.app,
        expiresIn seconds: Double? = nil
    ) async throws -> String {
        var random = SplitMix(seed: seed)
        let key = APIKey(using: &random)
        try await APIKeyStore(owner, schema: "rules").add(
            key, name: "test", app: app, operations: operations,
            expiresAt: seconds.map { Date().addingTimeInterval($0) })
        return key.secret
    }

    /// A publisher's bearer token for ``app``, with `changes` to its claims.
    static func token(
        scope: JSONValue = "events:publish", _ changes: [String: JSONValue?] = [:]
    ) async throws -> String {
        try await BearerKeys.shared(changes.merging(["sub": "shop", "scope": scope]) { given, _ in given })
    }

    /// Posts to `/v1/events`, or to another address.
    func post(
        _ body: String, type: String? = CloudEvents.structuredContentType, key: String?,
        _ headers: [String: String] = [:],
        uri: String = "/v1/events"
    ) async throws -> Answer {
        var fields = HTTPFields()
        if let key { fields[.authorization] = "Bearer \(key)" }
        if let type { fields[.contentType] = type }
        for (name, value) in headers { fields[HTTPField.Name(name)!] = value }
        return try await client.execute(
            uri: uri, method: .post, headers: fields, body: ByteBuffer(string: body)
        ) { response in
            let bytes = Array(response.body.readableBytesView)
            if response.status.code >= 400 {
                #expect(response.headers[.contentType] == "application/problem+json")
            }
            return Answer(
                status: response.status.code,
                body: try WireCoding.decode(JSONValue.self, from: bytes, maximumSize: 1 << 24),
                headers: response.headers)
        }
    }

    /// The events that rules would receive.
    func received() throws -> [DomainEvent] {
        try bus.messages(in: Self.queue).map { message in
            try CloudEvents.decode(
                routingKey: message.routingKey, contentType: message.properties.contentType,
                headers: message.properties.headers.compactMapValues(\.text), body: message.body)
        }
    }
}

/// A structured event.
func event(
    _ id: String? = "e-1", type: String = "thing.happened", data: String = #"{"user":"1"}"#, extra: String = ""
) -> String {
    let id = id.map { #""id":"\#($0)","# } ?? ""
    return #"{"specversion":"1.0",\#(id)"source":"/up","type":"\#(type)","data":\#(data)\#(extra)}"#
}

import AMQP
import Foundation
import HTTPTypes
import Messaging
import Postgres
import PushProtocol
import Synchronization
import Testing
import TestSupport
import Yams

@testable import EventsAPI

/// Provokes every error in `openapi.yaml`, by status and by the `detail` of each example. An example that does not occur
/// fails, and so does a status without an example.
@Suite(.enabled(if: TestDatabase.isAvailable, "needs a database"), .timeLimit(.minutes(4))) struct DocumentedErrorsTests
{
    /// An error of an operation, with the detail of an example.
    struct Documented: Hashable, Sendable, CustomStringConvertible {
        var operation: String
        var status: Int
        var detail: String

        var description: String { "\(operation) \(status): \(detail)" }
    }

    /// The answers so far.
    private final class Found: Sendable {
        private let answers = Mutex<Set<Documented>>([])

        func add(_ operation: String, _ answer: EventsHTTP.Answer) {
            let found = Documented(
                operation: "POST /v1/\(operation)", status: answer.status, detail: answer.body["detail"]?.string ?? "")
            answers.withLock { _ = $0.insert(found) }
        }

        var all: Set<Documented> { answers.withLock(\.self) }
    }

    private static func documented() throws -> Set<Documented> {
        let text = try String(contentsOf: EventsOpenAPITests.file, encoding: .utf8)
        let document = try #require(try Yams.load(yaml: text) as? [String: Any])
        let components = try #require(document["components"] as? [String: Any])
        let examples = try #require(components["examples"] as? [String: [String: Any]])
        var found: Set<Documented> = []
        // MatrixRoutesTests provokes the errors of the Matrix gateway.
        for (path, members) in try #require(document["paths"] as? [String: [String: Any]])
        where !path.hasPrefix("/_matrix") {
            for (method, operation) in members {
                let responses = try #require((operation as? [String: Any])?["responses"] as? [String: [String: Any]])
                for (status, response) in responses {
                    guard let code = Int(status), code >= 400 else { continue }
                    let content = try #require(response["content"] as? [String: [String: Any]])
                    let named = content["application/problem+json"]?["examples"] as? [String: [String: String]]
                    for reference in try #require(named, "\(path) \(status)").values {
                        let name = try #require(reference["$ref"]?.split(separator: "/").last)
                        let value = try #require(examples[String(name)]?["value"] as? [String: Any])
                        #expect(value["status"] as? Int == code)
                        let detail = try #require(value["detail"] as? String)
                        let operation = "\(method.uppercased()) \(path)"
                        found.insert(Documented(operation: operation, status: code, detail: detail))
                    }
                }
            }
        }
        return found
    }

    /// A valid request to an operation, with changes.
    private static func send(
        _ http: EventsHTTP, _ operation: String, key: String?, body: String? = nil, type: String? = nil,
        _ headers: [String: String] = [:], query: String = ""
    ) async throws -> EventsHTTP.Answer {
        let isEvent = operation == "events"
        return try await http.post(
            body ?? (isEvent ? event() : NotificationRoutesTests.body),
            type: type ?? (isEvent ? CloudEvents.structuredContentType : "application/json"), key: key, headers,
            uri: "/v1/\(operation)\(query)")
    }

    private static let publishing = ["events": APIKey.Operation.publishEvents, "notifications": .sendNotifications]

    /// The refusals of callers and bodies.
    private static func refusals(_ found: Found) async throws {
        try await EventsHTTP.with { http async throws in
            let reader = try await http.key(9, for: [.readEvents])
            let foreign = try await EventsHTTP.token(scope: "events:publish notifications:send")
            let user = try await BearerKeys.shared([:])
            for (number, (name, operation)) in publishing.enumerated() {
                func add(
                    key: String?, body: String? = nil, type: String? = nil, _ headers: [String: String] = [:],
                    query: String = ""
                ) async throws {
                    found.add(name, try await send(http, name, key: key, body: body, type: type, headers, query: query))
                }
                let key = try await http.key(UInt64(number * 2), for: [operation])
                let every = try await http.key(UInt64(number * 2 + 1), for: [operation], app: nil)
                let other = operation == .publishEvents ? "notifications:send" : "events:publish"
                for credential in [nil, "x", "a.b.c", reader, user, try await EventsHTTP.token(scope: .string(other))] {
                    try await add(key: credential)
                }
                for credential in [key, foreign] { try await add(key: credential, ["Heliograph-App": "other"]) }
                try await add(key: every)
                try await add(key: every, query: "?app=unknown")
                try await add(key: key, query: "?wait=x")
                try await add(key: key, body: String(repeating: " ", count: WireCoding.maximumBodySize + 1))
                try await add(key: key, type: "text/plain")
                try await add(
                    key: key, body: operation == .publishEvents ? #"{"specversion":"1.0","id":"1","type":"t"}"# : "{}")
            }
            let events = try await http.key(20)
            let batch = ContentMode.batchContentType
            let sourceless = #"[{"specversion":"1.0","id":"1","type":"t"}]"#
            found.add("events", try await send(http, "events", key: events, body: sourceless, type: batch))
            let limited = try await EventsHTTP.token(["event_types": ["order."]])
            found.add("events", try await send(http, "events", key: limited))
            let sender = try await http.key(21, for: [.sendNotifications])
            let override = #"{"users":["1"],"content":{"body":"B","fcm":{"message":{"no_such_field":1}}}}"#
            found.add("notifications", try await send(http, "notifications", key: sender, body: override))
        }
    }

    /// The errors of limits, broker and database.
    private static func failures(_ found: Found) async throws {
        let clock = ManualClock()
        try await EventsHTTP.with(requests: 1, uptime: { clock.now }) { http async throws in
            for (name, operation) in publishing {
                let key = try await http.key(name == "events" ? 1 : 2, for: [operation])
                for _ in 1...2 { found.add(name, try await send(http, name, key: key)) }
                http.bus.answer(publishesTo: .events, with: [.nacked])
                let further = try await http.key(name == "events" ? 3 : 4, for: [operation])
                found.add(name, try await send(http, name, key: further))
            }
            try await http.owner.execute("ALTER TABLE rules.api_key RENAME TO elsewhere")
            for name in publishing.keys {
                found.add(name, try await send(http, name, key: EventsOpenAPITests.anyKey))
            }
        }
        let publishes = HeldPublishes()
        try await EventsHTTP.with(budget: 1, send: publishes.send) { http async throws in
            let key = try await http.key(for: [.publishEvents, .sendNotifications])
            let first = Task { try await send(http, "events", key: key) }
            try await eventually("the first request publishes") { publishes.count == 1 }
            for name in publishing.keys { found.add(name, try await send(http, name, key: key)) }
            publishes.release()
            _ = try await first.value
        }
        try await EventsHTTP.with(deadline: .milliseconds(50), send: unconfirmed()) { http async throws in
            let key = try await http.key(for: [.publishEvents, .sendNotifications])
            for name in publishing.keys { found.add(name, try await send(http, name, key: key)) }
        }
        try await EventsHTTP.withoutDatabase { http async throws in
            for name in publishing.keys {
                found.add(name, try await send(http, name, key: EventsOpenAPITests.anyKey))
            }
        }
    }

    private static func testPushes(_ found: Found) async throws {
        let clock = ManualClock()
        try await EventsHTTP.with(uptime: { clock.now }) { http async throws in
            func add(_ token: String?, query: String = "?wait=0s") async throws {
                found.add("test-pushes", try await http.post("", type: nil, key: token, uri: "/v1/test-pushes\(query)"))
            }
            let user = try await BearerKeys.shared([:])
            for token in [nil, "a.b.c", try await EventsHTTP.token(), user, user] { try await add(token) }
            try await add(user, query: "?wait=x")
            http.bus.answer(publishesTo: .events, with: [.nacked])
            try await add(try await BearerKeys.shared(["sub": "457"]))
        }
    }

    @Test func `every documented error occurs, and no error with another status`() async throws {
        let found = Found()
        try await Self.refusals(found)
        try await Self.failures(found)
        try await Self.testPushes(found)
        let documented = try Self.documented()
        #expect(documented.count >= 40)
        let missing = documented.subtracting(found.all).map(\.description).sorted()
        #expect(missing == [], "\(found.all.map(\.description).sorted().joined(separator: "\n"))")
        let statuses = Set(documented.map { "\($0.operation) \($0.status)" })
        for error in found.all where error.status >= 400 {
            #expect(statuses.contains("\(error.operation) \(error.status)"), "\(error)")
        }
    }
}

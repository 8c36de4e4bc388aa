import Foundation
import HTTPAuth
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import PushProtocol
import ServiceLifecycle
import Testing
import TestSupport

@testable import Rules

/// `/v1/inbox/stream` on a socket.
@Suite(.timeLimit(.minutes(4))) struct StreamOnTheWireTests {
    struct Wire: Sendable {
        let http: RulesHTTP
        let port: Int
        let stop: @Sendable () async -> Void

        /// Handles an event about a room. Transactions of other tests on the same server delay nothing.
        func handleEvent(_ event: String, users: String = "[1]", room: Int) async throws {
            _ = try await http.fixture.handleEvent(event, users: users, room: room)
            http.clock.advance(InboxFeedStore.patience + .milliseconds(1))
        }

        /// Opens a stream as a user; returns once the response has begun.
        func listen(_ headers: String = "", user: String = "1") async throws -> StreamingClient {
            let client = try StreamingClient(
                port: port,
                request: "GET /v1/inbox/stream HTTP/1.1\r\nHost: localhost\r\n"
                    + "Authorization: Bearer \(http.bearers[user]!)\r\n\(headers)\r\n")
            try await eventually("the response head") { client.text.contains("\r\n\r\n") }
            return client
        }
    }

    /// Runs the server and the hub, and stops them in the order of the process.
    private static func with(_ body: @escaping @Sendable (Wire) async throws -> Void) async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            try await http.serve([http.inboxFeed]) { port, group in
                try await body(Wire(http: http, port: port) { await group.triggerGracefulShutdown() })
            }
        }
    }

    /// The id and thread of each event in a stream.
    private static func events(_ text: String) -> [(id: String, thread: String)] {
        text.matches(of: /event: item\nid: (\S+)\ndata: (.+)\n\n/).compactMap { match in
            guard let item = try? WireCoding.decode(JSONValue.self, from: Array(match.2.utf8)) else { return nil }
            return (String(match.1), item["thread"]?.string ?? "none")
        }
    }

    @Test func `events arrive immediately, and a reconnect with Last-Event-ID neither loses nor repeats one`()
        async throws
    {
        try await Self.with { (wire: Wire) async throws in
            try await wire.handleEvent("before", room: 9)
            let client = try await wire.listen()
            #expect(client.text.hasPrefix("HTTP/1.1 200 OK\r\n"))
            #expect(client.text.lowercased().contains("content-type: text/event-stream"))
            try await eventually("the retry field") { client.text.contains("retry: 2000\n\n") }
            try await wire.handleEvent("a", room: 1)
            try await eventually("the first item") { Self.events(client.text).map(\.thread) == ["1"] }
            try await wire.handleEvent("b", users: "[2]", room: 5)
            try await wire.handleEvent("c", room: 2)
            try await eventually("the second item") { Self.events(client.text).map(\.thread) == ["1", "2"] }
            client.close()
            try await wire.handleEvent("d", room: 3)
            let last = Self.events(client.text)[0].id
            let again = try await wire.listen("Last-Event-ID: \(last)\r\n")
            try await eventually("the missed items") { Self.events(again.text).map(\.thread) == ["2", "3"] }
            try await wire.handleEvent("e", room: 4)
            try await eventually("the new item") { Self.events(again.text).map(\.thread) == ["2", "3", "4"] }
            again.close()
        }
    }

    @Test func `a stream ends with its last chunk at once when the service stops`() async throws {
        try await Self.with { (wire: Wire) async throws in
            let clients = [try await wire.listen(), try await wire.listen(user: "2")]
            try await eventually("both listen") { wire.http.inboxFeed.listeners == 2 }
            await wire.stop()
            for client in clients {
                try await eventually("the end") { client.isOver }
                // The last chunk (RFC 9112 §7.1).
                #expect(client.text.hasSuffix("0\r\n\r\n"))
            }
        }
    }

    @Test func `a closed stream frees its place, and a user's streams are limited`() async throws {
        try await Self.with { (wire: Wire) async throws in
            var clients: [StreamingClient] = []
            for _ in 0..<StreamRoutes.maximumPerUser { clients.append(try await wire.listen()) }
            let refused = try await wire.listen()
            #expect(refused.text.hasPrefix("HTTP/1.1 429 "))
            let other = try await wire.listen(user: "2")
            #expect(other.text.hasPrefix("HTTP/1.1 200 "))
            for client in clients { client.close() }
            // The server notices closed streams on its next write.
            try await eventually("a free stream") {
                try await wire.handleEvent("e\(UUID())", room: 1)
                let client = try await wire.listen()
                defer { client.close() }
                return client.text.hasPrefix("HTTP/1.1 200 ")
            }
            other.close()
            refused.close()
        }
    }

    @Test func `a missing token and an id of another stream are refused`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            #expect(try await http.send(.get, "/v1/inbox/stream", user: nil).status == 401)
            var headers = HTTPFields()
            headers[.authorization] = "Bearer \(http.bearers["1"]!)"
            headers[HTTPField.Name("Last-Event-ID")!] = "7"
            try await http.client.execute(uri: "/v1/inbox/stream", method: .get, headers: headers) { response in
                #expect(response.status == .badRequest)
            }
        }
    }
}

import Foundation
import Testing

@testable import HeliographClient

private func item(_ number: Int) -> String {
    """
    {"id": "00000000-0000-4000-8000-00000000000\(number)", "at": "2026-01-16T09:30:00.123Z", "read_at": null, \
    "rule": "chat-message", "type": "chat", "title": "Pat", "subtitle": null, "body": "Dinner", "image": null, \
    "deep_link": "app://chat", "category": null, "thread": "9", "data": {"message_id": 123}}
    """
}

private let id = UUID(uuidString: "00000000-0000-4000-8000-000000000001")!

@Suite struct InboxTests {
    @Test func `a page of the inbox is read, and its query is encoded`() async throws {
        let server = try StubServer { _, _ in .json(#"{"items": [\#(item(1))], "next": "5_a", "unread": 3}"#) }
        let page = try await makeClient(server).inbox(before: "6_b", limit: 10, unread: true, thread: "a b&c/ü")
        #expect(
            server.requests.first?.path
                == "/v1/inbox?limit=10&before=6_b&unread=true&thread=a%20b%26c%2F%C3%BC")
        let first = try #require(page.items.first)
        #expect(page.next == "5_a" && page.unread == 3 && first.id == id)
        #expect(first.readAt == nil && first.deepLink == "app://chat" && first.data["message_id"] == 123)
        #expect(first.at == Date(timeIntervalSince1970: 1_768_555_800.123))
    }

    @Test func `marking as read sends each selection`() async throws {
        let server = try StubServer { _, _ in .json(#"{"marked": 2, "unread": 1}"#) }
        let client = makeClient(server)
        for selection in [InboxSelection.ids([id]), .thread("9"), .until(id), .all] {
            let (marked, unread) = try await client.markRead(selection)
            #expect(marked == 2 && unread == 1)
        }
        let bodies = try server.requests.map { try JSONDecoder().decode(JSONValue.self, from: $0.body) }
        let text = JSONValue.string(id.uuidString.lowercased())
        #expect(bodies == [["ids": [text]], ["thread": "9"], ["until": text], ["all": true]])
    }

    @Test func `receipts without a connection are sent after a restart`() async throws {
        let isAway = Flag(true)
        let server = try StubServer { request, _ in
            guard request.path == "/v1/receipts" else { return .json("{}") }
            return isAway.value ? .json(503, "{}") : StubServer.Reply(status: 204)
        }
        let store = MemoryStore()
        let first = makeClient(server, store: store)
        await first.opened(id)
        await first.opened(id)
        isAway.value = false
        try await makeClient(server, store: store).signIn(as: "456", details: english)
        let body = try JSONDecoder().decode(JSONValue.self, from: #require(server.requests.last?.body))
        #expect(body == ["receipts": [["id": .string(id.uuidString.lowercased()), "what": "opened"]]])
        let count = server.requests.count
        try await makeClient(server, store: store).signIn(as: "456", details: english)
        #expect(server.requests.count == count)
    }

    @Test func `presence is renewed until the app disappears`() async throws {
        let server = try StubServer { request, _ in
            request.method == "PUT" ? .json("{}") : StubServer.Reply(status: 204)
        }
        let client = makeClient(server)
        try await client.appear(viewing: "9")
        try await eventually { server.requests.count >= 3 }
        try await client.disappear()
        let requests = server.requests
        #expect(requests.dropLast().allSatisfy { $0.method == "PUT" } && requests.last?.method == "DELETE")
        let body = try JSONDecoder().decode(JSONValue.self, from: requests[0].body)
        #expect(body == ["viewing": "9", "for": 45])
        #expect(requests[0].path == "/v1/presence/\(await client.installation)")
    }

    @Test func `preferences are read, and a patch keeps nulls`() async throws {
        let server = try StubServer { _, _ in
            .json(
                """
                {"chosen": {"types": {"chat": false}}, "enabled": true,
                 "channels": {"push": true, "banner": true, "inbox": true}, "zone": "Europe/Berlin",
                 "types": {"chat": {"about": "Chats", "on": false, "default": true, "critical": false,
                                    "channels": {"push": false, "banner": false, "inbox": true}}}}
                """)
        }
        let client = makeClient(server)
        let preferences = try await client.preferences()
        #expect(preferences.types["chat"]?.on == false && preferences.chosen["types"]?["chat"] == false)
        try await client.setType("chat", on: nil)
        try await client.unmute("thread/9")
        let bodies = server.requests.dropFirst().map { String(decoding: $0.body, as: UTF8.self) }
        #expect(bodies == [#"{"types":{"chat":null}}"#, #"{"mutes":{"thread/9":null}}"#])
        #expect(server.requests.last?.method == "PATCH")
    }
}

@Suite struct InboxStreamTests {
    @Test func `the stream reconnects with the last id`() async throws {
        let server = try StubServer { _, number in
            let parts =
                switch number {
                case 0: ["retry: 10\n\n", "event: item\nid: 1_a\nda", "ta: \(item(1))\n\n"]
                case 1:
                    [
                        ":\n\n", "event: item\r\nid: 2_b\r\ndata: \(item(2))\r\n\r\n",
                        "event: removed\nid: 3_c\ndata: {\"id\":\"00000000-0000-4000-8000-000000000001\"}\n\n",
                    ]
                default: [":\n\n"]
                }
            return StubServer.Reply(status: 200, headers: ["Content-Type": "text/event-stream"], parts: parts)
        }
        var seen: [String] = []
        for try await event in makeClient(server).inboxEvents() {
            switch event {
            case .connected(let isComplete): seen.append(isComplete ? "resumed" : "new")
            case .item(let item): seen.append(String(item.id.uuidString.suffix(1)))
            case .removed(let id): seen.append("removed \(id.uuidString.suffix(1))")
            }
            if seen.count == 6 { break }
        }
        #expect(seen == ["new", "1", "resumed", "2", "removed 1", "resumed"])
        #expect(server.requests.prefix(3).map { $0.headers["last-event-id"] } == [nil, "1_a", "3_c"])
    }

    @Test func `an unknown id is left out, and failures are repeated with growing pauses`() async throws {
        let server = try StubServer { request, number in
            switch number {
            case 0: StubServer.Reply(status: 200, parts: ["id: 1_a\n\n"])
            case 1: .json(400, "{}")
            case 2, 3: .json(503, "{}")
            default: StubServer.Reply(status: 200, parts: [":\n\n"])
            }
        }
        let clock = TestClock()
        var connections: [Bool] = []
        for try await event in makeClient(server, clock: clock).inboxEvents() {
            if case .connected(let isComplete) = event { connections.append(isComplete) }
            if connections.count == 2 { break }
        }
        #expect(connections == [false, false])
        #expect(server.requests.prefix(3).map { $0.headers["last-event-id"] } == [nil, "1_a", nil])
        #expect(clock.pauses.prefix(4) == [1, 2, 4, 8])
    }

    @Test func `a refused user ends the stream with an error`() async throws {
        let server = try StubServer { _, _ in .json(403, #"{"detail": "no user of an app"}"#) }
        await #expect(throws: HeliographError.refused(status: 403, detail: "no user of an app")) {
            for try await _ in makeClient(server).inboxEvents() {}
        }
    }

    @Test(arguments: [1, 2, 3, 7, 1000]) func `events are found at every border of chunks`(size: Int) throws {
        let text =
            "\u{FEFF}retry: 2000\n\n: hello\r\n\r\nid: 1\rdata: a\rdata:b\r\revent: item\ndata\ndata:  é\nid:2\n\n"
        var parser = EventStreamParser()
        var events: [ServerSentEvent] = []
        let bytes = Data(text.utf8)
        for start in stride(from: 0, to: bytes.count, by: size) {
            events += try parser.append(bytes[start..<min(start + size, bytes.count)])
        }
        #expect(
            events == [ServerSentEvent(name: "message", data: "a\nb"), ServerSentEvent(name: "item", data: "\n é")])
        #expect(parser.lastID == "2" && parser.retry == 2)
    }

    @Test func `an endless line is refused`() throws {
        var parser = EventStreamParser()
        #expect(throws: HeliographError.self) { try parser.append(Data(repeating: 97, count: (1 << 20) + 1)) }
    }
}

/// Waits for a condition, for a minute at most.
func eventually(_ condition: @Sendable () -> Bool) async throws {
    let end = Date().addingTimeInterval(60)
    while !condition() {
        guard Date() < end else { throw HeliographError.unreadable("the condition did not hold within a minute") }
        try await Task.sleep(nanoseconds: 5_000_000)
    }
}

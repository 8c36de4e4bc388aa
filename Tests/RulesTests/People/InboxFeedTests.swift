import Foundation
import HTTPTypes
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// The inbox stream without a socket.
@Suite(.timeLimit(.minutes(3))) struct InboxFeedTests {
    typealias PollResult = (threads: [String], listener: InboxFeedStore.Listener)

    /// The threads of a listener's new items, and its next position. Retries while transactions of other tests on the
    /// same server hold items back.
    private static func pollLater(_ http: RulesHTTP, _ listener: InboxFeedStore.Listener) async throws -> PollResult {
        http.clock.advance(InboxFeedStore.patience + .milliseconds(1))
        return try #require(try await poll(http.inboxFeed, listener))
    }

    /// A listener for items from now on.
    private static func listener(_ http: RulesHTTP, _ user: String = "1") async throws -> InboxFeedStore.Listener {
        let person = PersonKey(app: RulesHTTP.app, user: UserID(rawValue: user)!)
        return try await http.inboxFeed.listener(person, after: nil)
    }

    /// The items that a listener gets from one poll of the hub.
    private static func poll(
        _ inboxFeed: InboxFeed, _ listener: InboxFeedStore.Listener
    ) async throws -> PollResult? {
        async let word = inboxFeed.next(for: listener)
        try await eventually("it listens") { inboxFeed.listeners == 1 }
        try await inboxFeed.look()
        let isDelivered = inboxFeed.listeners == 0
        if !isDelivered { inboxFeed.sendHeartbeats(after: .zero) }
        switch await word {
        case .news(let items, let place):
            var listener = listener
            listener.after = place
            return (
                items.map { entry in
                    switch entry.change {
                    case .new(let item): item.rendered.content.thread ?? ""
                    case .removed: "removed"
                    }
                }, listener
            )
        case .nothing, .end: return nil
        }
    }

    @Test func `a listener gets each later item of its user once and in order`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            _ = try await http.fixture.handleEvent("before", room: 9)
            http.clock.advance(InboxFeedStore.patience)
            let start = try await Self.listener(http)
            let others = try await Self.listener(http, "2")
            let nothing = try await Self.poll(http.inboxFeed, start)
            #expect(nothing == nil)
            for room in 1...3 { _ = try await http.fixture.handleEvent("e\(room)", room: room) }
            _ = try await http.fixture.handleEvent("other", users: "[2]", room: 4)
            let first = try await Self.pollLater(http, start)
            #expect(first.threads == ["1", "2", "3"])
            let place = first.listener.after
            #expect(FeedCursor(place.text) == place)
            let rest = try await Self.poll(http.inboxFeed, first.listener)
            #expect(rest == nil)
            let other = try await Self.pollLater(http, others)
            #expect(other.threads == ["4"])
        }
    }

    @Test func `a removed item is reported once, in order with new items`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            let start = try await Self.listener(http)
            for room in 1...2 { _ = try await http.fixture.handleEvent("e\(room)", room: room) }
            let first = try await Self.pollLater(http, start)
            let ids = try await http.inbox()
            #expect(first.threads == ["1", "2"] && ids.count == 2)
            #expect(try await http.send(.delete, "/v1/inbox/\(ids[0])").status == 204)
            _ = try await http.fixture.handleEvent("e3", room: 3)
            // A repeat, and an unknown item, remove nothing.
            #expect(try await http.send(.delete, "/v1/inbox/\(ids[0])").status == 204)
            #expect(try await http.send(.delete, "/v1/inbox/\(UUID())").status == 204)
            #expect(try await http.send(.delete, "/v1/inbox/\(ids[1])").status == 204)
            let second = try await Self.pollLater(http, first.listener)
            #expect(second.threads == ["removed", "3", "removed"])
            let rest = try await Self.poll(http.inboxFeed, second.listener)
            #expect(rest == nil)
        }
    }

    @Test func `more items than one poll returns come in several polls`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            var place = try await Self.listener(http)
            for room in 0..<45 { _ = try await http.fixture.handleEvent("e\(room)", room: room) }
            var received: [String] = []
            for count in [20, 20, 5] {
                let part = try await Self.pollLater(http, place)
                #expect(part.threads.count == count)
                received += part.threads
                place = part.listener
            }
            #expect(received == (0..<45).map(String.init))
        }
    }

    @Test func `an item of a transaction that commits late is neither lost nor overtaken`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            let start = try await Self.listener(http)
            let gate = Gate()
            let written = Gate()
            let (pool, clock) = (http.pool, http.clock)
            async let late: Void = pool.transaction { transaction in
                // Gets its transaction id before the other, and commits after it.
                try await transaction.execute(
                    """
                    WITH said AS (
                        INSERT INTO rules.saying (id, app, rule, lane, content, mutes, correlation, said_at)
                        VALUES (gen_random_uuid(), 'test', 'only', 'interactive',
                            '{"silent":false,"thread":"late"}', '{}', 'c', \(clock.now.date)) RETURNING id)
                    INSERT INTO rules.inbox (notification, app, user_id, saying, thread, at)
                    SELECT gen_random_uuid(), 'test', '1', id, 'late', \(clock.now.date) FROM said
                    """)
                written.open()
                await gate.pass()
            }
            await written.pass()
            _ = try await http.fixture.handleEvent("early", room: 7)
            let waiting = try await Self.poll(http.inboxFeed, start)
            #expect(waiting == nil)
            gate.open()
            try await late
            let received = try await Self.pollLater(http, start)
            #expect(received.threads == ["late", "7"])
        }
    }

    @Test func `a long transaction elsewhere delays items for a limited time only`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            let start = try await Self.listener(http)
            let (gate, written) = (Gate(), Gate())
            async let long: Void = http.pool.transaction { transaction in
                try await transaction.execute("CREATE TABLE something (id int)")
                written.open()
                await gate.pass()
            }
            await written.pass()
            _ = try await http.fixture.handleEvent("early", room: 7)
            http.clock.advance(InboxFeedStore.patience)
            let waiting = try await Self.poll(http.inboxFeed, start)
            #expect(waiting == nil)
            let received = try await Self.pollLater(http, start)
            #expect(received.threads == ["7"])
            gate.open()
            try await long
        }
    }

    @Test func `items that are muted, on screen, read or disabled are not shown`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            var place = try await Self.listener(http)
            func receive(_ event: String, room: Int = 1) async throws -> [String] {
                _ = try await http.fixture.handleEvent(event, room: room)
                let received = try await Self.pollLater(http, place)
                place = received.listener
                return received.threads
            }
            func setPreferences(_ patch: JSONValue) async throws {
                #expect(try await http.send(.patch, "/v1/preferences", patch).status == 200)
            }
            #expect(try await receive("a") == ["1"])
            #expect(try await http.send(.put, "/v1/presence/phone", ["viewing": "1"]).status == 200)
            #expect(try await receive("b") == [])
            #expect(try await receive("c", room: 2) == ["2"])
            #expect(try await http.send(.delete, "/v1/presence/phone").status == 204)
            try await setPreferences(["mutes": ["room/2": [:]]])
            #expect(try await receive("d", room: 2) == [])
            try await setPreferences(["mutes": nil, "types": ["chat": false]])
            #expect(try await receive("e") == [])
            try await setPreferences(["types": nil, "channels": ["banner": false]])
            #expect(try await receive("f") == [])
            try await setPreferences(["channels": ["push": false]])
            #expect(try await receive("g") == [])
            try await setPreferences(["channels": ["banner": true]])
            #expect(try await receive("h") == ["1"])
            try await setPreferences(["enabled": false])
            #expect(try await receive("i") == [])
            try await setPreferences(["enabled": nil, "channels": nil])
            _ = try await http.fixture.handleEvent("j", room: 3)
            #expect(try await http.send(.post, "/v1/inbox/read", ["all": true]).status == 200)
            #expect(try await receive("k", room: 4) == ["4"])
        }
    }

    @Test func `listeners are released when the hub stops or when they leave`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            let listener = try await Self.listener(http)
            let left = Task { await http.inboxFeed.next(for: listener) }
            try await eventually("it listens") { http.inboxFeed.listeners == 1 }
            left.cancel()
            guard case .end = await left.value else {
                Issue.record("a listener that left gets an item")
                return
            }
            #expect(http.inboxFeed.listeners == 0)
            let waiting = Task { await http.inboxFeed.next(for: listener) }
            try await eventually("it listens") { http.inboxFeed.listeners == 1 }
            http.inboxFeed.finish()
            for word in [await waiting.value, await http.inboxFeed.next(for: listener)] {
                guard case .end = word else {
                    Issue.record("the listener still waits after the hub stopped")
                    return
                }
            }
        }
    }

    @Test(arguments: ["", "x", "1", "_", "1_x", "x_\(UUID())", "-1_\(UUID())", "1_\(UUID())_2"])
    func `an invalid Last-Event-ID is refused`(text: String) {
        #expect(FeedCursor(text) == nil)
    }
}

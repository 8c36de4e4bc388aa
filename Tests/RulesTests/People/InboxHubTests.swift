import Foundation
import HTTPTypes
import Postgres
import PushProtocol
import TestSupport
import Testing

@testable import Rules

/// News of inboxes, without a socket.
@Suite(.timeLimit(.minutes(3))) struct InboxHubTests {
    typealias Heard = (threads: [String], listener: NewsStore.Listener)

    /// The threads that a listener hears of, and where it goes on, once it is not waited for others any more: for what other
    /// tests write on the same server.
    private static func hear(_ http: RulesHTTP, _ listener: NewsStore.Listener) async throws -> Heard {
        http.clock.advance(NewsStore.patience + .milliseconds(1))
        return try #require(try await glimpse(http.hub, listener))
    }

    /// Somebody who hears of what comes from now on.
    private static func listener(_ http: RulesHTTP, _ user: String = "1") async throws -> NewsStore.Listener {
        let person = PersonKey(app: RulesHTTP.app, user: UserID(rawValue: user)!)
        return try await http.hub.listener(person, after: nil)
    }

    /// What a listener hears of when the hub looks once.
    private static func glimpse(
        _ hub: InboxHub, _ listener: NewsStore.Listener
    ) async throws -> Heard? {
        async let word = hub.next(for: listener)
        try await eventually("it listens") { hub.listeners == 1 }
        try await hub.look()
        let isHeard = hub.listeners == 0
        if !isHeard { hub.comfort(after: .zero) }
        switch await word {
        case .news(let items, let place):
            var listener = listener
            listener.after = place
            return (items.map { $0.item.saying.content.thread ?? "" }, listener)
        case .nothing, .end: return nil
        }
    }

    @Test func `what is said after the beginning is heard once, in order, by its person`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            _ = try await http.house.happen("before", room: 9)
            http.clock.advance(NewsStore.patience)
            let start = try await Self.listener(http)
            let others = try await Self.listener(http, "2")
            let nothing = try await Self.glimpse(http.hub, start)
            #expect(nothing == nil)
            for room in 1...3 { _ = try await http.house.happen("e\(room)", room: room) }
            _ = try await http.house.happen("other", users: "[2]", room: 4)
            let first = try await Self.hear(http, start)
            #expect(first.threads == ["1", "2", "3"])
            let place = first.listener.after
            #expect(NewsPlace(place.text) == place)
            let rest = try await Self.glimpse(http.hub, first.listener)
            #expect(rest == nil)
            let other = try await Self.hear(http, others)
            #expect(other.threads == ["4"])
        }
    }

    @Test func `more than fits at once comes in parts`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            var place = try await Self.listener(http)
            for room in 0..<45 { _ = try await http.house.happen("e\(room)", room: room) }
            var heard: [String] = []
            for count in [20, 20, 5] {
                let part = try await Self.hear(http, place)
                #expect(part.threads.count == count)
                heard += part.threads
                place = part.listener
            }
            #expect(heard == (0..<45).map(String.init))
        }
    }

    @Test func `what is written by a transaction that ends late is neither lost nor passed`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            let start = try await Self.listener(http)
            let gate = Gate()
            let written = Gate()
            let (pool, clock) = (http.pool, http.clock)
            async let late: Void = pool.transaction { transaction in
                // Writes with a number of its own before the other, and ends after it.
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
            _ = try await http.house.happen("early", room: 7)
            let waiting = try await Self.glimpse(http.hub, start)
            #expect(waiting == nil)
            gate.open()
            try await late
            let heard = try await Self.hear(http, start)
            #expect(heard.threads == ["late", "7"])
        }
    }

    @Test func `what others write for long is not waited for`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            let start = try await Self.listener(http)
            let (gate, written) = (Gate(), Gate())
            async let long: Void = http.pool.transaction { transaction in
                try await transaction.execute("CREATE TABLE something (id int)")
                written.open()
                await gate.pass()
            }
            await written.pass()
            _ = try await http.house.happen("early", room: 7)
            http.clock.advance(NewsStore.patience)
            let waiting = try await Self.glimpse(http.hub, start)
            #expect(waiting == nil)
            let heard = try await Self.hear(http, start)
            #expect(heard.threads == ["7"])
            gate.open()
            try await long
        }
    }

    @Test func `nothing is shown of what is muted, on the screen, read, or not wanted`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            var place = try await Self.listener(http)
            func hear(_ event: String, room: Int = 1) async throws -> [String] {
                _ = try await http.house.happen(event, room: room)
                let heard = try await Self.hear(http, place)
                place = heard.listener
                return heard.threads
            }
            func choose(_ patch: JSONValue) async throws {
                #expect(try await http.send(.patch, "/v1/preferences", patch).status == 200)
            }
            #expect(try await hear("a") == ["1"])
            #expect(try await http.send(.put, "/v1/presence/phone", ["viewing": "1"]).status == 200)
            #expect(try await hear("b") == [])
            #expect(try await hear("c", room: 2) == ["2"])
            #expect(try await http.send(.delete, "/v1/presence/phone").status == 204)
            try await choose(["mutes": ["room/2": [:]]])
            #expect(try await hear("d", room: 2) == [])
            try await choose(["mutes": nil, "types": ["chat": false]])
            #expect(try await hear("e") == [])
            try await choose(["types": nil, "channels": ["banner": false]])
            #expect(try await hear("f") == [])
            try await choose(["channels": ["push": false]])
            #expect(try await hear("g") == [])
            try await choose(["channels": ["banner": true]])
            #expect(try await hear("h") == ["1"])
            try await choose(["enabled": false])
            #expect(try await hear("i") == [])
            try await choose(["enabled": nil, "channels": nil])
            _ = try await http.house.happen("j", room: 3)
            #expect(try await http.send(.post, "/v1/inbox/read", ["all": true]).status == 200)
            #expect(try await hear("k", room: 4) == ["4"])
        }
    }

    @Test func `nobody waits after the end, nor who has left`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            let listener = try await Self.listener(http)
            let left = Task { await http.hub.next(for: listener) }
            try await eventually("it listens") { http.hub.listeners == 1 }
            left.cancel()
            guard case .end = await left.value else {
                Issue.record("who leaves is told something")
                return
            }
            #expect(http.hub.listeners == 0)
            let waiting = Task { await http.hub.next(for: listener) }
            try await eventually("it listens") { http.hub.listeners == 1 }
            http.hub.finish()
            for word in [await waiting.value, await http.hub.next(for: listener)] {
                guard case .end = word else {
                    Issue.record("it goes on after the end")
                    return
                }
            }
        }
    }

    @Test(arguments: ["", "x", "1", "_", "1_x", "x_\(UUID())", "-1_\(UUID())", "1_\(UUID())_2"])
    func `what is no place is none`(text: String) {
        #expect(NewsPlace(text) == nil)
    }
}

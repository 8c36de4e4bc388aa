import AMQP
import Foundation
import HTTPTypes
import Messaging
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import Rules

/// Badge corrections after items were read over HTTP, by a receipt or by an event.
@Suite(.timeLimit(.minutes(3))) struct BadgeCorrectionTests {
    static let counting = DecisionStoreTests.rules.replacing("sound: default,", with: "sound: default, badge: unread,")

    /// `user badge` of each due correction.
    private static func corrections(_ http: RulesHTTP, on bus: InMemoryBus? = nil) async throws -> [String] {
        let bus = bus ?? InMemoryBus(apps: [RulesHTTP.app])
        let queue = WorkQueue.registryNotifications(.interactive).name
        let before = bus.messages(in: queue).count
        try await corrector(http, bus).correctDue()
        return try bus.messages(in: queue).dropFirst(before).flatMap { message in
            let notification = try Notification.decode(wireBody: message.body)
            #expect(notification.rule == "!badge" && notification.content == Content(collapseKey: "unread"))
            return notification.recipients.map { "\($0.user) \($0.badge ?? -1)" }
        }.sorted()
    }

    private static func corrector(_ http: RulesHTTP, _ bus: InMemoryBus) -> BadgeCorrector {
        let clock = http.clock
        return BadgeCorrector(
            service: "rules", store: BadgeStore(pool: http.pool), currentRules: CurrentRules(http.fixture.ruleSets),
            bus: bus,
            now: { clock.now }, logger: .silent)
    }

    @Test func `several reads in a short time cause one delayed correction`() async throws {
        try await RulesHTTP.with(Self.counting) { (http: RulesHTTP) async throws in
            for event in ["a", "b", "c", "d"] { _ = try await http.fixture.handleEvent(event, users: "[1,2]") }
            let ids = try await http.inbox()
            for id in ids.prefix(2) {
                #expect(try await http.send(.post, "/v1/inbox/read", ["ids": [.string(id)]]).status == 200)
                http.clock.advance(.milliseconds(500))
            }
            let receipt: JSONValue = ["receipts": [["id": .string(ids[2]), "what": "opened"]]]
            #expect(try await http.send(.post, "/v1/receipts", receipt).status == 204)
            #expect(try await Self.corrections(http) == [])
            http.clock.advance(.seconds(1))
            #expect(try await Self.corrections(http) == ["1 1"])
            #expect(try await RulesDatabase.count("rules.badge", http.pool) == 0)
            // The item is already read, so nothing changes.
            #expect(try await http.send(.post, "/v1/inbox/read", ["ids": [.string(ids[0])]]).status == 200)
            #expect(try await http.send(.delete, "/v1/inbox/\(ids[0])").status == 204)
            http.clock.advance(.seconds(3))
            #expect(try await Self.corrections(http) == [])
            // A deleted unread item is no longer counted.
            #expect(try await http.send(.delete, "/v1/inbox/\(ids[3])").status == 204)
            http.clock.advance(.seconds(3))
            #expect(try await Self.corrections(http) == ["1 0"])
        }
    }

    @Test func `a read during a correction causes another correction with a new id`()
        async throws
    {
        try await RulesHTTP.with(Self.counting) { (http: RulesHTTP) async throws in
            for event in ["a", "b"] { _ = try await http.fixture.handleEvent(event) }
            let ids = try await http.inbox()
            func read(_ id: String) async throws {
                #expect(try await http.send(.post, "/v1/inbox/read", ["ids": [.string(id)]]).status == 200)
                http.clock.advance(BadgeStore.pause)
            }
            try await read(ids[0])
            let store = BadgeStore(pool: http.pool)
            let taken = try await store.take(now: http.clock.now)
            #expect(taken.map(\.unread) == [1])
            #expect(try await store.take(now: http.clock.now) == [])
            try await read(ids[1])
            try await store.forget(taken)
            let again = try await store.take(now: http.clock.now)
            #expect(again.map(\.unread) == [0])
            #expect(again[0].version != taken[0].version)
        }
    }

    @Test func `an unconfirmed correction is published again after its lease`() async throws {
        try await RulesHTTP.with(Self.counting) { (http: RulesHTTP) async throws in
            _ = try await http.fixture.handleEvent("a")
            #expect(try await http.send(.post, "/v1/inbox/read", ["all": true]).status == 200)
            http.clock.advance(BadgeStore.pause)
            let bus = InMemoryBus(apps: [RulesHTTP.app])
            bus.loseConnection()
            bus.close()
            await #expect(throws: (any Error).self) { try await Self.corrector(http, bus).correctDue() }
            #expect(try await Self.corrections(http) == [])
            http.clock.advance(BadgeStore.lease)
            #expect(try await Self.corrections(http) == ["1 0"])
        }
    }

    @Test func `an app without badges gets no correction, and one with custom badges only clears`() async throws {
        for (rules, expected) in [
            (DecisionStoreTests.rules, [[], []]),
            (DecisionStoreTests.rules.replacing("sound: default,", with: "sound: default, badge: 1,"), [[], ["1 0"]]),
        ] as [(String, [[String]])] {
            try await RulesHTTP.with(rules) { (http: RulesHTTP) async throws in
                for event in ["a", "b"] { _ = try await http.fixture.handleEvent(event) }
                let ids = try await http.inbox()
                for (id, expected) in zip(ids, expected) {
                    #expect(try await http.send(.post, "/v1/inbox/read", ["ids": [.string(id)]]).status == 200)
                    http.clock.advance(BadgeStore.pause)
                    #expect(try await Self.corrections(http) == expected)
                }
                #expect(try await RulesDatabase.count("rules.badge", http.pool) == 0)
            }
        }
    }

    @Test func `several processes correct each user once`() async throws {
        try await RulesHTTP.with(Self.counting) { (http: RulesHTTP) async throws in
            let due = http.clock.now.date
            try await http.pool.execute(
                """
                INSERT INTO rules.badge (app, user_id, due_at) SELECT 'test', 'u' || n, \(due)
                FROM generate_series(1, 1200) AS n
                """)
            let bus = InMemoryBus(apps: [RulesHTTP.app])
            try await withThrowingDiscardingTaskGroup { group in
                for _ in 0..<3 { group.addTask { try await Self.corrector(http, bus).correctDue() } }
            }
            let published = try bus.messages(in: WorkQueue.registryNotifications(.interactive).name)
                .flatMap { try Notification.decode(wireBody: $0.body).recipients }
            #expect(published.count == 1200 && Set(published.map(\.notification)).count == 1200)
            #expect(try await RulesDatabase.count("rules.badge", http.pool) == 0)
        }
    }

    @Test func `deleting old unread items causes one correction within a day`() async throws {
        try await RulesHTTP.with(Self.counting) { (http: RulesHTTP) async throws in
            for event in ["a", "b", "c"] { _ = try await http.fixture.handleEvent(event, users: "[1,2]") }
            let clock = http.clock
            func notification(_ event: String, _ user: String) async throws -> UUID {
                try await http.pool.query(
                    """
                    SELECT notification FROM rules.decision JOIN rules.event ON key = event
                    WHERE id = \(event) AND user_id = \(user)
                    """
                ).single()
            }
            /// Makes these users' items older than the retention.
            func age(_ event: String, _ users: [String]) async throws {
                for user in users {
                    try await http.pool.execute(
                        """
                        UPDATE rules.inbox SET at = \((clock.now + .seconds(-86_400 * 91)).date)
                        WHERE notification = \(try await notification(event, user))
                        """)
                }
                try await HistoryStoreTests.sweeper(http.pool, step: 1000, now: clock.now).sweep()
            }
            // One user has read the old items, the other none.
            let read = JSONValue.string(try await notification("a", "1").uuidString.lowercased())
            #expect(try await http.send(.post, "/v1/inbox/read", ["ids": [read]]).status == 200)
            http.clock.advance(BadgeStore.pause)
            #expect(try await Self.corrections(http) == ["1 2"])
            try await age("a", ["1", "2"])
            #expect(try await RulesDatabase.count("rules.inbox", http.pool) == 4)
            // Not before half a day has passed; later deletions join the same correction.
            http.clock.advance(.seconds(43_199))
            #expect(try await Self.corrections(http) == [])
            try await age("b", ["2"])
            http.clock.advance(.seconds(43_201))
            #expect(try await Self.corrections(http) == ["2 1"])
            #expect(try await RulesDatabase.count("rules.badge", http.pool) == 0)
            // A read is not delayed by that.
            try await age("c", ["2"])
            #expect(try await http.unread(user: "2") == 0)
            _ = try await http.fixture.handleEvent("d", users: "[2]")
            #expect(try await http.send(.post, "/v1/inbox/read", ["all": true], user: "2").status == 200)
            http.clock.advance(BadgeStore.pause)
            #expect(try await Self.corrections(http) == ["2 0"])
            http.clock.advance(.seconds(86_400))
            #expect(try await Self.corrections(http) == [])
        }
    }
}

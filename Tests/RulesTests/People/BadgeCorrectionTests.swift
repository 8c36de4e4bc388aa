import AMQP
import Foundation
import HTTPTypes
import Messaging
import Postgres
import PushProtocol
import TestSupport
import Testing

@testable import Rules

/// Badges that are corrected when something was read, whichever way it was told.
@Suite(.timeLimit(.minutes(3))) struct BadgeCorrectionTests {
    static let counting = DecisionStoreTests.rules.replacing("sound: default,", with: "sound: default, badge: unread,")

    /// `user badge` of each correction that is due.
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
            service: "rules", store: BadgeStore(pool: http.pool), shelf: RuleShelf(http.house.book), bus: bus,
            now: { clock.now }, logger: .silent)
    }

    @Test func `a burst of readings is one correction, a little later`() async throws {
        try await RulesHTTP.with(Self.counting) { (http: RulesHTTP) async throws in
            for event in ["a", "b", "c", "d"] { _ = try await http.house.happen(event, users: "[1,2]") }
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
            // What was read before is read, so that nothing changes.
            #expect(try await http.send(.post, "/v1/inbox/read", ["ids": [.string(ids[0])]]).status == 200)
            #expect(try await http.send(.delete, "/v1/inbox/\(ids[0])").status == 204)
            http.clock.advance(.seconds(3))
            #expect(try await Self.corrections(http) == [])
            // What is deleted unread does not count any more.
            #expect(try await http.send(.delete, "/v1/inbox/\(ids[3])").status == 204)
            http.clock.advance(.seconds(3))
            #expect(try await Self.corrections(http) == ["1 0"])
        }
    }

    @Test func `what is read while a correction is on its way is corrected once more, under another id`()
        async throws
    {
        try await RulesHTTP.with(Self.counting) { (http: RulesHTTP) async throws in
            for event in ["a", "b"] { _ = try await http.house.happen(event) }
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

    @Test func `what the broker did not take is published again when its time is over`() async throws {
        try await RulesHTTP.with(Self.counting) { (http: RulesHTTP) async throws in
            _ = try await http.house.happen("a")
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

    @Test func `an app that counts nothing is left alone, and one with other badges is cleared only`() async throws {
        for (rules, expected) in [
            (DecisionStoreTests.rules, [[], []]),
            (DecisionStoreTests.rules.replacing("sound: default,", with: "sound: default, badge: 1,"), [[], ["1 0"]]),
        ] as [(String, [[String]])] {
            try await RulesHTTP.with(rules) { (http: RulesHTTP) async throws in
                for event in ["a", "b"] { _ = try await http.house.happen(event) }
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

    @Test func `many processes correct each person once`() async throws {
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
            let told = try bus.messages(in: WorkQueue.registryNotifications(.interactive).name)
                .flatMap { try Notification.decode(wireBody: $0.body).recipients }
            #expect(told.count == 1200 && Set(told.map(\.notification)).count == 1200)
            #expect(try await RulesDatabase.count("rules.badge", http.pool) == 0)
        }
    }

    @Test func `what is deleted unread because it is old is corrected within a day, once`() async throws {
        try await RulesHTTP.with(Self.counting) { (http: RulesHTTP) async throws in
            for event in ["a", "b", "c"] { _ = try await http.house.happen(event, users: "[1,2]") }
            let clock = http.clock
            func notification(_ event: String, _ user: String) async throws -> UUID {
                try await http.pool.query(
                    """
                    SELECT notification FROM rules.decision JOIN rules.event ON key = event
                    WHERE id = \(event) AND user_id = \(user)
                    """
                ).single()
            }
            /// Of these people it comes to be too old.
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
            // One has read what is old, the other nothing.
            let read = JSONValue.string(try await notification("a", "1").uuidString.lowercased())
            #expect(try await http.send(.post, "/v1/inbox/read", ["ids": [read]]).status == 200)
            http.clock.advance(BadgeStore.pause)
            #expect(try await Self.corrections(http) == ["1 2"])
            try await age("a", ["1", "2"])
            #expect(try await RulesDatabase.count("rules.inbox", http.pool) == 4)
            // Not before half a day is over; what goes in the meantime goes with it.
            http.clock.advance(.seconds(43_199))
            #expect(try await Self.corrections(http) == [])
            try await age("b", ["2"])
            http.clock.advance(.seconds(43_201))
            #expect(try await Self.corrections(http) == ["2 1"])
            #expect(try await RulesDatabase.count("rules.badge", http.pool) == 0)
            // Reading does not wait for that.
            try await age("c", ["2"])
            #expect(try await http.unread(user: "2") == 0)
            _ = try await http.house.happen("d", users: "[2]")
            #expect(try await http.send(.post, "/v1/inbox/read", ["all": true], user: "2").status == 200)
            http.clock.advance(BadgeStore.pause)
            #expect(try await Self.corrections(http) == ["2 0"])
            http.clock.advance(.seconds(86_400))
            #expect(try await Self.corrections(http) == [])
        }
    }
}

import Foundation
import Messaging
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RuleDryRun
@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// Events under `replace` on a real database: waiting notifications, inbox items, pushes and their order.
@Suite(.timeLimit(.minutes(8))) struct ReplacementStoreTests {
    typealias GatheringFixture = GatheringTests.GatheringFixture

    static func rules(_ policy: String, how: String = "sound: default, expires-after: 2d") -> String {
        """
        app: test
        zone: UTC
        types: { news: { about: News } }
        caps: { few: { at-most: 1, within: 1h } }
        events:
          message.sent: { examples: [{ id: 1, users: [a], text: Hi, at: "2026-01-20T12:00:00Z" }] }
          message.edited: { examples: [{ id: 1, text: Hi }] }
          message.deleted: { examples: [{ id: 1 }] }
        revoke: [{ event: message.deleted, item: "m/{{id}}" }]
        replace: [{ event: message.edited, item: "m/{{id}}", rule: only }]
        rules:
          only:
            when: { event: message.sent }
            to: { users: users }
            say: { body: "{{text}}" }
            how: { \(how) }
            policy: \(policy)
        """
    }

    /// The rules on a database, and the messages of each event.
    struct Fixture {
        let base: GatheringFixture
        var pool: PostgresPool { base.pool }

        /// Handles an event, and returns its disposition and its messages.
        @discardableResult
        func handle(
            _ type: String, _ data: String, id: String = UUID().uuidString, at time: String? = nil,
            patience: Duration = .zero
        ) async throws -> (disposition: Disposition, messages: [Outbound]) {
            var store = DecisionStore(pool: pool, spread: .zero)
            store.replacementPatience = patience
            store.recordedApps = { [AppID(rawValue: "test")!] }
            let verdict = try await base.verdict(type, data, id: id, at: time, by: store)
            return (verdict.disposition, verdict.outbound)
        }

        func send(_ text: String, users: String = #"["a"]"#, id: String = "s", at time: String? = nil) async throws
            -> [PushProtocol.Notification]
        {
            try await notifications(
                handle(
                    "message.sent",
                    #"{"id":1,"users":\#(users),"text":"\#(text)","at":"2026-01-20T12:00:00Z"}"#, id: id, at: time
                ).messages)
        }

        @discardableResult
        func edit(_ text: String, id: String = "e", at time: String? = nil) async throws
            -> [PushProtocol.Notification]
        {
            try await notifications(
                handle("message.edited", #"{"id":1,"text":"\#(text)"}"#, id: id, at: time).messages)
        }

        func notifications(_ messages: [Outbound]) throws -> [PushProtocol.Notification] {
            try messages.filter { !$0.routingKey.hasPrefix("revoked.") }
                .map { try PushProtocol.Notification.decode(wireBody: $0.body) }
        }

        /// Stores an acceptance for each recipient.
        func accept(_ notifications: [PushProtocol.Notification]) async throws {
            for recipient in notifications.flatMap(\.recipients) {
                try await pool.execute(
                    """
                    INSERT INTO rules.outcome
                    VALUES (\(recipient.notification), NULL, 'accepted', 'apns', NULL, clock_timestamp())
                    """)
            }
        }

        func reasons() async throws -> [String] {
            try await pool.query(
                """
                SELECT event.id || ' ' || answer || ' ' || reason FROM rules.decision
                    JOIN rules.event ON event.key = decision.event ORDER BY decided_at, event.id, step
                """
            ).map { try $0.decode(String.self, at: 0) }
        }

        func inbox() async throws -> [String] {
            try await pool.query(
                """
                SELECT notification::text || ' ' || (content ->> 'body') FROM rules.inbox
                    JOIN rules.saying ON saying.id = inbox.saying ORDER BY at, 1
                """
            ).map { try $0.decode(String.self, at: 0) }
        }
    }

    private func with(_ rules: String, _ body: (Fixture) async throws -> Void) async throws {
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            try await body(Fixture(base: try GatheringFixture(pool, rules)))
        }
    }

    static let plain = #"{ item: "m/{{id}}" }"#

    @Test func `given a shown notification, then one quiet push has its identifier, and the inbox keeps its row`()
        async throws
    {
        try await with(Self.rules(#"{ type: news, caps: few, item: "m/{{id}}" }"#)) { (fixture: Fixture) async throws in
            let sent = try await fixture.send("Old", users: #"["a","b"]"#)
            try await fixture.accept(sent)
            let before = try await fixture.inbox()
            let originals = sent.flatMap(\.recipients).map { $0.notification.uuidString.lowercased() }
            let edited = try await fixture.edit("New")
            #expect(Set(edited.compactMap(\.content.collapseKey)) == Set(originals) && edited.count == 2)
            #expect(edited.allSatisfy { $0.content.body == "New" && $0.content.sound == nil })
            #expect(edited.allSatisfy { $0.content.interruptionLevel == .passive })
            #expect(edited.map(\.expiresAt) == [sent[0].expiresAt, sent[0].expiresAt])
            #expect(try await fixture.inbox() == before.map { $0.replacing("Old", with: "New") })
            let logs = try await fixture.pool.query("SELECT logs ->> 'few' FROM rules.person")
                .map { try $0.decode(String.self, at: 0) }
            #expect(logs.count == 2 && logs.allSatisfy { !$0.contains(",") })
            // The old texts are gone.
            #expect(try await RulesDatabase.count("rules.saying", fixture.pool) == 1)
            // A repeat is the same until the outcomes arrive, and then nothing.
            let again = try await fixture.edit("New")
            #expect(again.map(\.trace.id) == edited.map(\.trace.id))
            #expect(again.map(\.content.collapseKey) == edited.map(\.content.collapseKey))
            try await fixture.accept(edited)
            #expect(try await fixture.edit("New").isEmpty)
            #expect(try await fixture.reasons().filter { $0.contains("replacement") }.count == 2)
        }
    }

    @Test func `given a push without an outcome, then senders skip it, and its replacement has the sound`() async throws
    {
        try await with(Self.rules(Self.plain)) { (fixture: Fixture) async throws in
            let sent = try await fixture.send("Old")
            let messages = try await fixture.handle("message.edited", #"{"id":1,"text":"New"}"#).messages
            #expect(messages.first?.routingKey == RoutingKey.revocation(AppID(rawValue: "test")!))
            let revoked = try NotificationRevocation.decode(wireBody: try #require(messages.first).body)
            #expect(revoked.notifications == sent.flatMap(\.recipients).map(\.notification))
            #expect(try fixture.notifications(messages).map(\.content.sound) == ["default"])
        }
    }

    @Test func `given a scheduled notification, then it is sent once, at its time, with the new texts`() async throws {
        try await with(Self.rules(#"{ item: "m/{{id}}", schedule: { at: at } }"#)) { (fixture: Fixture) async throws in
            #expect(try await fixture.send("Old").isEmpty)
            #expect(try await fixture.edit("New").isEmpty)
            #expect(try await fixture.base.runWorkers() == [])
            fixture.base.clock.set(moment("2026-01-20T12:00:01Z"))
            #expect(try await fixture.base.runWorkers() == ["a: New"])
            #expect(try await fixture.inbox().map { $0.hasSuffix(" New") } == [true])
            #expect(try await fixture.reasons().contains("e drop words-replaced"))
        }
    }

    @Test func `given an entry of a digest, then the summary has the new value`() async throws {
        let policy =
            #"{ item: "m/{{id}}", digest: { after: 15m, keep: { t: "{{text}}" }, say: { body: "{{#first}}{{t}}{{/first}}" } } }"#
        let rules = Self.rules(policy).replacing(#"say: { body: "{{text}}" }"#, with: "say: {}")
            .replacing(#"{{#first}}{{t}}{{/first}}"#, with: #"{{#items}}{{t}}{{/items}}"#)
        try await with(rules) { (fixture: Fixture) async throws in
            _ = try await fixture.send("Old")
            _ = try await fixture.edit("New")
            fixture.base.clock.advance(.seconds(1000))
            #expect(try await fixture.base.runWorkers() == ["a: New"])
            // The summary was sent.
            try await fixture.edit("Newer", id: "late")
            #expect(try await fixture.reasons().contains("late drop nothing-to-replace"))
        }
    }

    @Test func `an older replacement never follows a newer one`() async throws {
        try await with(Self.rules(Self.plain)) { (fixture: Fixture) async throws in
            try await fixture.accept(try await fixture.send("Old", at: "2026-01-10T11:00:00Z"))
            #expect(try await fixture.edit("Second", id: "2", at: "2026-01-10T11:20:00Z").count == 1)
            #expect(try await fixture.edit("First", id: "1", at: "2026-01-10T11:10:00Z").isEmpty)
            #expect(try await fixture.edit("Third", id: "3", at: "2026-01-10T11:30:00Z").count == 1)
            #expect(try await fixture.inbox().map { $0.hasSuffix(" Third") } == [true])
            #expect(try await fixture.reasons().contains("1 drop overtaken"))
        }
    }

    @Test func `a replacement before its original waits, and then replaces it`() async throws {
        try await with(Self.rules(Self.plain)) { (fixture: Fixture) async throws in
            func early() async throws -> Disposition {
                try await fixture.handle(
                    "message.edited", #"{"id":1,"text":"New"}"#, id: "e", at: "2026-01-10T11:10:00Z",
                    patience: .seconds(300)
                ).disposition
            }
            #expect(try await early().label == "postpone")
            #expect(try await RulesDatabase.count("rules.event", fixture.pool) == 0)
            try await fixture.accept(try await fixture.send("Old", at: "2026-01-10T11:00:00Z"))
            #expect(try await early() == .done)
            #expect(try await fixture.inbox().map { $0.hasSuffix(" New") } == [true])
        }
    }

    @Test func `a replacement of an unknown item is decided after the wait, and is explained`() async throws {
        try await with(Self.rules(Self.plain)) { (fixture: Fixture) async throws in
            #expect(try await fixture.edit("New").isEmpty)
            #expect(try await fixture.reasons() == ["e drop nothing-to-replace"])
        }
    }

    @Test func `a revoked or read notification is not pushed again`() async throws {
        try await with(Self.rules(Self.plain)) { (fixture: Fixture) async throws in
            let sent = try await fixture.send("Old", users: #"["a","b","c"]"#, at: "2026-01-10T11:00:00Z")
            try await fixture.accept(sent)
            try await fixture.pool.execute("UPDATE rules.inbox SET read_at = now() WHERE user_id = 'a'")
            try await fixture.pool.execute("DELETE FROM rules.inbox WHERE user_id = 'b'")
            let edited = try await fixture.edit("New", at: "2026-01-10T11:10:00Z")
            #expect(edited.flatMap(\.recipients).map(\.user.rawValue) == ["c"])
            // The read item has the new texts too.
            #expect(try await fixture.inbox().map { $0.hasSuffix(" New") } == [true, true])
            try await fixture.handle("message.deleted", #"{"id":1}"#, at: "2026-01-10T11:20:00Z")
            #expect(try await fixture.edit("Newer", id: "later", at: "2026-01-10T11:30:00Z").isEmpty)
            #expect(try await fixture.reasons().filter { $0 == "later drop revoked" }.count == 3)
            #expect(try await fixture.reasons().filter { $0 == "e drop already-read" }.count == 2)
        }
    }

    @Test func `given more notifications than the limit, then all texts stay`() async throws {
        try await with(Self.rules(Self.plain)) { (fixture: Fixture) async throws in
            let users = (0...Replacement.maximumNotifications).map { #""u\#($0)""# }.joined(separator: ",")
            _ = try await fixture.send("Old", users: "[\(users)]")
            #expect(try await fixture.edit("New").isEmpty)
            #expect(try await fixture.reasons().contains("e drop too-many"))
        }
    }

    @Test func `recorded replacements are reproduced`() async throws {
        try await with(Self.rules(Self.plain)) { (fixture: Fixture) async throws in
            try await fixture.accept(try await fixture.send("Old", users: #"["a","b"]"#, at: "2026-01-10T11:00:00Z"))
            try await fixture.pool.execute("UPDATE rules.inbox SET read_at = now() WHERE user_id = 'a'")
            try await fixture.edit("New", at: "2026-01-10T11:10:00Z")
            try await fixture.edit("Older", id: "o", at: "2026-01-10T11:05:00Z")
            try await fixture.handle("message.edited", #"{"id":2,"text":"x"}"#, id: "unknown")
            let rules = fixture.base.currentRules.ruleSets
            let comparison = try await RecordingStoreTests.comparison(rules, rules, fixture.pool)
            #expect(comparison.check.differing.isEmpty, "\(comparison.check.differing)")
            #expect(comparison.check.obstacles.isEmpty && comparison.check.reproduced == 7)
        }
    }

    @Test func `a stream reports an item again when its texts change`() async throws {
        try await with(Self.rules(Self.plain)) { (fixture: Fixture) async throws in
            try await fixture.accept(try await fixture.send("Old"))
            let feed = InboxFeedStore(pool: fixture.pool)
            let person = PersonKey(app: AppID(rawValue: "test")!, user: user("a"))
            func bodies(after: FeedCursor) async throws -> ([String], FeedCursor) {
                let now = fixture.base.clock.now
                let listener = InboxFeedStore.Listener(
                    person: person, after: after, since: now - InboxFeedStore.horizon)
                let entries = try await feed.news(for: [listener], now: now).entries[0] ?? []
                let bodies = entries.compactMap { entry in
                    if case .new(let item) = entry.change { item.rendered.content.body } else { nil }
                }
                return (bodies, entries.last?.place ?? after)
            }
            // The stream waits for older transactions, also those of other tests.
            try await eventually("the item") { try await bodies(after: FeedCursor(before: 0)).0 == ["Old"] }
            let place = try await bodies(after: FeedCursor(before: 0)).1
            // The item is older than the horizon of the stream.
            fixture.base.clock.advance(.seconds(7200))
            try await fixture.edit("New")
            try await eventually("the item with its new text") { try await bodies(after: place).0 == ["New"] }
        }
    }
}

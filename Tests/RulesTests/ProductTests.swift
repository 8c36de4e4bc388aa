import AMQP
import Foundation
import Logging
import Messaging
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import Rules

/// Shipped rule files on a real database, with a test clock and an in-memory bus.
struct Product: Sendable {
    let pool: PostgresPool
    let app: String
    let clock = DecisionStoreTests.Clock(moment("2026-02-26T12:00:00Z"))
    let currentRules: CurrentRules
    private let handler: EventHandler

    static func run(_ app: String, _ body: (Product) async throws -> Void) async throws {
        try await RulesDatabase.withPool { pool in try await body(Product(pool: pool, app: app)) }
    }

    private init(pool: PostgresPool, app: String) throws {
        self.pool = pool
        self.app = app
        let clock = clock
        currentRules = CurrentRules(RuleSets([try Shipped.ruleSet(app)]))
        handler = EventHandler(
            currentRules: currentRules, store: DecisionStore(pool: pool, spread: .zero),
            now: { clock.now })
    }

    /// Handles an event and returns the published notifications.
    ///
    /// - Parameter moment: the event's `time`.
    func handleEvent(
        _ type: String, _ data: String, id: String = UUID().uuidString, at moment: String? = nil
    ) async throws -> [PushProtocol.Notification] {
        let extra = moment.map { #","time":"\#($0)""# } ?? ""
        let inbound = delivered(cloudEvent(id: id, type: type, data: data, extra: extra), routingKey: "\(app).\(type)")
            .at(clock.now)
        let verdicts = try await handler.handle([Delivery(inbound: inbound, message: try handler.decode(inbound))])
        #expect(verdicts.map(\.disposition) == [.done], "\(verdicts.map(\.disposition))")
        return try verdicts[0].outbound.map { try Notification.decode(wireBody: $0.body) }
    }

    /// Runs the workers for held and digested notifications and returns the published notifications.
    func runWorkers() async throws -> [PushProtocol.Notification] {
        let bus = InMemoryBus(apps: [AppID(rawValue: app)!])
        let logger = Logger(label: "tests.rules")
        let clock = clock
        try await DigestWorker(
            store: DigestStore(pool: pool), currentRules: currentRules, now: { clock.now }, logger: logger
        ).closeDue()
        try await ScheduledSendWorker(
            service: "rules", store: HeldStore(pool: pool, spread: .zero), currentRules: currentRules, bus: bus,
            bulkThrottle: BulkThrottle(pauseFactor: 1), now: { clock.now },
            logger: logger
        ).releaseDue()
        return try Lane.allCases.flatMap { lane in
            try bus.messages(in: WorkQueue.registryNotifications(lane).name).map {
                try Notification.decode(wireBody: $0.body)
            }
        }
    }

    /// `answer reason` of each decision about a user, in order.
    func decisionLog(_ user: String) async throws -> [String] {
        try await pool.query(
            """
            SELECT rule || ' ' || answer || ' ' || reason FROM rules.decision WHERE user_id = \(user)
            ORDER BY decided_at, step, notification
            """
        ).map { try $0.decode(String.self, at: 0) }
    }

    func setPreferences(_ settings: PersonalSettings, user: String) async throws {
        let text = String(decoding: try WireCoding.encode(settings), as: UTF8.self)
        try await pool.execute(
            """
            INSERT INTO rules.person (app, user_id, settings) VALUES (\(app), \(user), \(text)::jsonb)
            ON CONFLICT (app, user_id) DO UPDATE SET settings = EXCLUDED.settings
            """)
    }

    /// The bodies in a user's inbox, oldest first.
    func inboxBodies(_ user: String) async throws -> [String] {
        try await pool.query(
            """
            SELECT coalesce(content ->> 'body', '') FROM rules.inbox JOIN rules.saying ON saying.id = inbox.saying
            WHERE user_id = \(user) ORDER BY inbox.at, notification
            """
        ).map { try $0.decode(String.self, at: 0) }
    }

    /// Runs the badge worker and returns the published badge corrections.
    func corrections() async throws -> [PushProtocol.Notification] {
        let bus = InMemoryBus(apps: [AppID(rawValue: app)!])
        try await BadgeCorrector(
            service: "rules", store: BadgeStore(pool: pool),
            currentRules: CurrentRules(RuleSets([try Shipped.ruleSet(app)])),
            bus: bus, now: { clock.now }, logger: .silent
        ).correctDue()
        return try bus.messages(in: WorkQueue.registryNotifications(.interactive).name).map {
            try Notification.decode(wireBody: $0.body)
        }
    }

    /// The number of items in a user's inbox, and the number of unread ones.
    func inbox(_ user: String) async throws -> [Int] {
        let row = try #require(
            try await pool.query(
                """
                SELECT count(*), count(*) FILTER (WHERE read_at IS NULL) FROM rules.inbox WHERE user_id = \(user)
                """
            ).first)
        return [try row.decode(Int.self, at: 0), try row.decode(Int.self, at: 1)]
    }
}

/// The requirements document of BaoLife, row by row.
@Suite(.timeLimit(.minutes(4))) struct BaoLifeTests {
    static let triggers: [(String, String, String, String, String)] = [
        (
            "npc.message.sent",
            #"{"player":{"id":"p"},"npc":{"id":"n","name":"Mei"},"conversation":{"id":"c"},"message":{"text":"Hi"}}"#,
            "Mei: Hi", "relationship", "baolife://conversation/c"
        ),
        (
            "achievement.unlocked", #"{"player":{"id":"p"},"achievement":{"id":"a","name":"First Job"}}"#,
            "Achievement Unlocked: First Job", "milestone", "baolife://achievements/a"
        ),
        (
            "life.event.happened", #"{"player":{"id":"p"},"event_log":{"id":"l","title":"Your neighbour moved away"}}"#,
            "Your neighbour moved away", "life_event", "baolife://life/l"
        ),
        (
            "life.event.happened", #"{"player":{"id":"p"},"event_log":{"id":"l","summary":"It rained"}}"#, "It rained",
            "life_event", "baolife://life/l"
        ),
        (
            "milestone.reached", #"{"player":{"id":"p"},"milestone":{"id":"m","description":"You married Mei"}}"#,
            "Life Milestone: You married Mei", "milestone", "baolife://life/m"
        ),
        (
            "career.changed", #"{"player":{"id":"p"},"career":{"id":"j","description":"You were fired"}}"#,
            "Career Update: You were fired", "life_event", "baolife://career/j"
        ),
        (
            "v2Prompt", #"{"player":{"id":"p"},"prompt":{"id":"v","text":"Your landlord wants an answer"}}"#,
            "Your landlord wants an answer", "life_event", "baolife://prompts/v"
        ),
    ]

    @Test(arguments: triggers)
    func `every trigger has its text, category and link`(
        type: String, data: String, text: String, category: String, link: String
    ) throws {
        let rules = try Shipped.ruleSet("baolife")
        let drafts = try rules.evaluate(event(type, app: "baolife", try json(data)))
        #expect(drafts.map(\.users) == [["p"]])
        let content = try #require(drafts.first?.content)
        #expect([content.body, content.category, content.deepLink] == [text, category, link])
    }

    @Test func `a fifth push within an hour goes to the inbox only`() async throws {
        try await Product.run("baolife") { (product: Product) async throws in
            var counts: [Int] = []
            for (type, data, _, _, _) in Self.triggers {
                counts.append(try await product.handleEvent(type, data).count)
            }
            #expect(counts == [1, 1, 1, 1, 0, 0, 0])
            #expect(try await product.inbox("p") == [7, 7])
            product.clock.advance(.seconds(3600))
            #expect(try await product.handleEvent(Self.triggers[0].0, Self.triggers[0].1).count == 1)
        }
    }

    @Test func `a player with an active session on any device gets no push`() async throws {
        try await Product.run("baolife") { (product: Product) async throws in
            let (type, data, _, _, _) = Self.triggers[0]
            func active(_ device: String) -> String { #"{"player":{"id":"p","device":"\#(device)"}}"# }
            #expect(try await product.handleEvent("session.active", active("phone")).isEmpty)
            #expect(try await product.handleEvent("session.active", active("tablet")).isEmpty)
            #expect(try await product.handleEvent(type, data).isEmpty)
            #expect(try await product.handleEvent("session.ended", active("phone")).isEmpty)
            #expect(try await product.handleEvent(type, data).isEmpty)
            #expect(try await product.handleEvent("session.ended", active("tablet")).isEmpty)
            #expect(try await product.handleEvent(type, data).count == 1)
            // A lost connection sends no event: its lease expires.
            #expect(try await product.handleEvent("session.active", active("phone")).isEmpty)
            product.clock.advance(.seconds(45))
            #expect(try await product.handleEvent(type, data).count == 1)
            #expect(try await product.inbox("p") == [4, 4])
        }
    }
}

/// The requirements document of Tweet, row by row.
@Suite(.timeLimit(.minutes(4))) struct TweetChatTests {
    func message(_ chat: String, content: String = "Hi", name: String = "Ada Byron") -> String {
        #"{"chat":{"id":"\#(chat)"},"message":{"id":"m","content":"\#(content)"},"sender":{"id":"u-1","name":"\#(name)","username":"ada"},"members":["u-1","u-2"]}"#
    }

    @Test func `the title is the sender's name or username, and the body the message or a placeholder`() async throws {
        let rules = try Shipped.ruleSet("tweet-chat")
        func said(_ data: String) throws -> [String?] {
            let drafts = try rules.evaluate(event("chat.message.sent", app: "tweet-chat", try json(data)))
            #expect(drafts.map(\.users) == [["u-2"]])
            return drafts.flatMap { [$0.content.title, $0.content.body, $0.content.deepLink, $0.content.sound] }
        }
        #expect(try said(message("c-1")) == ["Ada Byron", "Hi", "tweet://chat/c-1", "default"])
        #expect(
            try said(message("c-1", content: "", name: "")) == ["ada", "New message", "tweet://chat/c-1", "default"])
    }

    @Test func `opening a chat on one device corrects the unread badge on all devices`()
        async throws
    {
        try await Product.run("tweet-chat") { (product: Product) async throws in
            func badges(_ type: String, _ data: String) async throws -> [Int?] {
                try await product.handleEvent(type, data).flatMap { $0.recipients.map(\.badge) }
            }
            #expect(try await badges("chat.message.sent", message("c-1")) == [1])
            #expect(try await badges("chat.message.sent", message("c-1")) == [2])
            #expect(try await badges("chat.message.sent", message("c-2")) == [3])
            let opened = #"{"reader":{"id":"u-2","device":"phone"},"chat":{"id":"c-1"}}"#
            #expect(try await product.handleEvent("chat.opened", opened) == [])
            product.clock.advance(BadgeStore.pause)
            let corrections = try await product.corrections()
            #expect(corrections.map(\.content) == [Content(collapseKey: "unread")])
            #expect(corrections.flatMap(\.recipients).map(\.user) == [user("u-2")])
            // The document requires that opening one chat clears the badge, even if another has unread messages.
            #expect(corrections.flatMap(\.recipients).map(\.badge) == [0])
            #expect(try await product.inbox("u-2") == [3, 0])
            // The app is open on the phone: the message is not pushed but still counts as unread.
            #expect(try await badges("chat.message.sent", message("c-2")) == [])
            #expect(try await product.inbox("u-2") == [4, 1])
            #expect(try await badges("app.inactive", #"{"reader":{"id":"u-2","device":"phone"}}"#) == [])
            #expect(try await badges("chat.message.sent", message("c-2")) == [2])
            #expect(try await badges("chat.list.opened", #"{"reader":{"id":"u-2","device":"tablet"}}"#) == [])
            product.clock.advance(BadgeStore.pause)
            #expect(try await product.corrections().flatMap(\.recipients).map(\.badge) == [0])
            #expect(try await product.inbox("u-2") == [5, 0])
            #expect(try await badges("app.inactive", #"{"reader":{"id":"u-2","device":"tablet"}}"#) == [])
            #expect(try await badges("chat.message.sent", message("c-1")) == [1])
            #expect(try await badges("notification.tapped", #"{"reader":{"id":"u-2","device":"phone"}}"#) == [])
            product.clock.advance(BadgeStore.pause)
            #expect(try await product.corrections().flatMap(\.recipients).map(\.badge) == [0])
        }
    }

    @Test func `a read event marks earlier messages of its batch as read, and no later ones`() async throws {
        try await RulesDatabase.withPool { pool in
            let handler = EventHandler(
                currentRules: CurrentRules(RuleSets([try Shipped.ruleSet("tweet-chat")])),
                store: DecisionStore(pool: pool))
            let batch = try [
                ("1", "chat.message.sent", message("c-1")),
                ("2", "chat.opened", #"{"reader":{"id":"u-2","device":"phone"},"chat":{"id":"c-1"}}"#),
                ("3", "chat.message.sent", message("c-1")),
            ].map { id, type, data in
                let inbound = delivered(cloudEvent(id: id, type: type, data: data), routingKey: "tweet-chat.\(type)")
                return Delivery(inbound: inbound, message: try handler.decode(inbound))
            }
            _ = try await handler.handle(batch)
            let unread = try await pool.query("SELECT count(*) FROM rules.inbox WHERE read_at IS NULL").single(Int.self)
            #expect(unread == 1)
            #expect(try await RulesDatabase.count("rules.inbox", pool) == 2)
        }
    }
}

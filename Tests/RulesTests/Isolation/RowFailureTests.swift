import Foundation
import Logging
import Messaging
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// Rows that fail when handled, and settings that cannot be read.
@Suite(.timeLimit(.minutes(8))) struct RowFailureTests {
    typealias TwoAppFixture = WorkerIsolationTests.TwoAppFixture

    @Test func `a held row that fails alone is marked dead, and the rest of its batch is published`() async throws {
        try await WorkerIsolationTests.with("{ schedule: { at: at } }") { (fixture: TwoAppFixture) async throws in
            try await fixture.handleEvent(users: "[1,2,3]")
            try await fixture.pool.execute(
                "ALTER TABLE rules.decision ADD CHECK (NOT (user_id = '2' AND step > 0)) NOT VALID")
            fixture.clock.set(moment("2026-01-20T12:00:01Z"))
            try await fixture.scheduledSendWorker.releaseDue()
            #expect(try fixture.published() == [WorkerIsolationTests.bad, WorkerIsolationTests.good])
            #expect(try await fixture.dead(.held) == ["failed", "failed"])
            #expect(try await fixture.count("rules.held WHERE user_id <> '2'") == 0)
            // It is published once the cause is fixed and an operator retries it.
            try await fixture.pool.execute("ALTER TABLE rules.decision DROP CONSTRAINT decision_check")
            try await fixture.pool.execute("UPDATE rules.held SET dead_at = NULL, dead_reason = NULL")
            try await fixture.scheduledSendWorker.releaseDue()
            #expect(try await fixture.count("rules.held") == 0)
        }
    }

    @Test func `a fan-out that fails alone is marked dead, and others go on`() async throws {
        try await WorkerIsolationTests.with("{ type: news }") { (fixture: TwoAppFixture) async throws in
            let names = (0..<1100).map { #""n-\#($0)""# }.joined(separator: ",")
            try await fixture.handleEvent(users: "[\(names)]")
            let key: UUID = try await fixture.pool.query("SELECT event FROM rules.crowd WHERE body ->> 'app' = 'bad'")
                .single()
            try await fixture.pool.execute(
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$")
            try await fixture.pool.execute(
                """
                CREATE TRIGGER refuse BEFORE INSERT ON rules.decision FOR EACH ROW EXECUTE FUNCTION refuse()
                """)
            #expect(try await fixture.teller.processNext())
            try await fixture.pool.execute("DROP TRIGGER refuse ON rules.decision")
            try await fixture.pool.execute("UPDATE rules.crowd SET dead_at = NULL WHERE event <> \(key)")
            while try await fixture.teller.processNext() {}
            #expect(try fixture.published() == [WorkerIsolationTests.good])
            #expect(try await fixture.dead(.largeAudience).allSatisfy { $0 == "failed" })
        }
    }

    @Test func `unreadable settings lose only their unreadable members, and other users lose nothing`() async throws {
        try await WorkerIsolationTests.with("{ type: news }") { (fixture: TwoAppFixture) async throws in
            let stored = """
                {"zone": "Atlantis/Old_Town", "mutes": {"a": {"muted": true}, "b": 7}, "quiet_hours": [],
                    "channels": {"push": false}, "types": {"news": {"push": "x"}}}
                """
            try await fixture.pool.execute(
                "INSERT INTO rules.person (app, user_id, settings) VALUES ('bad', '1', \(stored)::jsonb)")
            try await fixture.handleEvent(users: "[1,2]")
            let story = try await fixture.pool.query(
                """
                SELECT app || ' ' || user_id || ' ' || answer || ' ' || reason
                FROM rules.decision JOIN rules.event ON key = event ORDER BY 1
                """
            ).map { try $0.decode(String.self, at: 0) }
            #expect(
                story == ["bad 1 inbox channel-off", "bad 2 push wanted", "good 1 push wanted", "good 2 push wanted"])
            #expect(try await fixture.dead(.person) == ["unreadable"])
        }
    }

    @Test func `an unreadable member row fails no event, and other members are notified`() async throws {
        try await WorkerIsolationTests.with("{ type: news }") { (fixture: TwoAppFixture) async throws in
            try await Self.addMembers(2, "u-0001", to: fixture)
            let handler = EventHandler(
                currentRules: fixture.currentRules, store: fixture.decisions, now: { fixture.clock.now })
            // One batch, with the bad app first.
            let batch = try [WorkerIsolationTests.bad, WorkerIsolationTests.good].map { app in
                let event = cloudEvent(
                    id: UUID().uuidString,
                    data: #"{"users":[],"name":"\#(app)","room":7,"at":"2026-01-20T12:00:00Z"}"#)
                let inbound = delivered(event, routingKey: "\(app).thing.happened").at(fixture.clock.now)
                return Delivery(inbound: inbound, message: try handler.decode(inbound))
            }
            #expect(try await handler.handle(batch).map(\.disposition) == [.done, .done])
            let notified = try await fixture.pool.query(
                "SELECT app || ' ' || user_id FROM rules.decision JOIN rules.event ON key = event ORDER BY 1"
            ).map { try $0.decode(String.self, at: 0) }
            #expect(notified == ["bad u-0001", "bad u-0002", "good u-0001", "good u-0002"])
            #expect(try await fixture.dead(.member) == ["unreadable"])
        }
    }

    @Test func `a fan-out skips an unreadable member row`() async throws {
        try await WorkerIsolationTests.with("{ type: news }") { (fixture: TwoAppFixture) async throws in
            // The unreadable row is the last one of the first step.
            try await Self.addMembers(1100, "u-0499", to: fixture)
            try await fixture.handleEvent(room: 7)
            var steps = 0
            while try await fixture.teller.processNext(), steps < 20 { steps += 1 }
            #expect(try fixture.published() == [WorkerIsolationTests.bad, WorkerIsolationTests.good])
            #expect(try await fixture.count("rules.decision WHERE user_id LIKE 'u-%'") == 2200)
            #expect(try await fixture.dead(.member) == ["unreadable"])
            #expect(try await fixture.dead(.largeAudience).isEmpty)
        }
    }

    /// Adds the members `u-0001`, `u-0002` … to group 7 in both apps. The bad app also gets a member id that begins with
    /// `prefix` and is too long.
    private static func addMembers(_ count: Int, _ prefix: String, to fixture: TwoAppFixture) async throws {
        for app in [WorkerIsolationTests.bad, WorkerIsolationTests.good] {
            try await fixture.pool.execute(
                """
                INSERT INTO rules.member (app, circle, user_id, has_left, at)
                SELECT \(app.rawValue), '7', 'u-' || lpad(n::text, 4, '0'), false, now()
                FROM generate_series(1, \(count)) AS n
                """)
        }
        try await fixture.pool.execute(
            """
            INSERT INTO rules.member (app, circle, user_id, has_left, at)
            VALUES ('bad', '7', \(prefix) || repeat('x', 300), false, now())
            """)
    }

    @Test func `unreadable stored settings are read member by member`() {
        let (value, isWhole) = PersonalSettings.stored(
            #"{"enabled":false,"zone":"Nowhere","language":"de","mutes":{"a":{"muted":true},"b":[]},"digest_time":"25:00"}"#
        )
        #expect(!isWhole)
        #expect(!value.isOn && value.zone == nil && value.language == Language("de") && value.digestTime == nil)
        #expect(value.mutes == ["a": PersonalSettings.Mute(isMuted: true)])
        for text in ["[]", "7", "null", #"{"enabled":[]}"#] {
            let (value, isWhole) = PersonalSettings.stored(text)
            #expect(value == PersonalSettings() && !isWhole)
        }
        #expect(PersonalSettings.stored("{}").isWhole)
    }

    @Test func `a log line has a dead row's table, app and key, and none of its content`() async throws {
        try await WorkerIsolationTests.with("{ schedule: { at: at } }") { (fixture: TwoAppFixture) async throws in
            try await fixture.handleEvent()
            try await fixture.spoil(#"UPDATE rules.saying SET content = '{"title":"secret","silent":7}'"#)
            fixture.clock.set(moment("2026-01-20T12:00:01Z"))
            let log = CapturingLogger()
            let store = HeldStore(pool: fixture.pool, spread: .zero, logger: log.logger)
            #expect(try await store.release(by: fixture.currentRules.ruleSets, now: fixture.clock.now).released.isEmpty)
            let lines = log.lines.filter { $0.message.contains("A row cannot be processed") }
            #expect(lines.count == 2 && lines.allSatisfy { $0.level == .warning })
            let key: [String] = try await fixture.pool.query(
                "SELECT notification::text FROM rules.held WHERE app = 'bad'"
            ).map { try $0.decode(String.self, at: 0) }
            #expect(
                lines.contains {
                    $0.metadata == [
                        "table": "rules.held", "app": "bad", "row": "\(key[0])", "reason": "unreadable",
                    ]
                })
            #expect(!log.lines.contains { "\($0)".contains("secret") })
        }
    }
}

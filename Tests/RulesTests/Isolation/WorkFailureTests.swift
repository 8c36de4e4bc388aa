import AMQP
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

/// Rows whose statements fail, and rows whose message the broker permanently refuses.
@Suite(.timeLimit(.minutes(8))) struct WorkFailureTests {
    typealias TwoAppFixture = WorkerIsolationTests.TwoAppFixture
    static let bad = WorkerIsolationTests.bad
    static let good = WorkerIsolationTests.good

    /// A worker that can mark rows as dead, with one due row of each app.
    enum Poller: String, CaseIterable, Sendable {
        case scheduledSendWorker, fanOutWorker, badgeCorrector, pushRevoker, notificationRevoker, deliveryReportWorker
        case shownCopyClearer

        var policy: String {
            switch self {
            case .scheduledSendWorker: "{ schedule: { at: at } }"
            case .deliveryReportWorker: "{ type: news, report: true }"
            case .fanOutWorker, .badgeCorrector, .pushRevoker, .notificationRevoker, .shownCopyClearer: "{ type: news }"
            }
        }

        var table: DeadRow.Table {
            switch self {
            case .scheduledSendWorker: .held
            case .fanOutWorker: .largeAudience
            case .badgeCorrector: .badge
            case .pushRevoker: .preferenceChange
            case .notificationRevoker: .revocation
            case .shownCopyClearer: .clearCommand
            case .deliveryReportWorker: .report
            }
        }

        /// Whether a row belongs to the bad app.
        var isBad: SQL { self == .fanOutWorker ? "OLD.body ->> 'app' = 'bad'" : "OLD.app = 'bad'" }

        /// The event and condition of a trigger that meets this worker's last change of a row.
        var end: (isDeletion: Bool, condition: SQL) {
            switch self {
            case .scheduledSendWorker, .badgeCorrector, .pushRevoker: (true, "true")
            case .fanOutWorker: (false, "OLD.decided IS NOT NULL AND NEW.decided IS NULL")
            case .deliveryReportWorker, .notificationRevoker, .shownCopyClearer: (false, "NEW.due_at IS NULL")
            }
        }

        func prepare(_ fixture: TwoAppFixture) async throws {
            switch self {
            case .scheduledSendWorker:
                try await fixture.handleEvent()
                fixture.clock.set(moment("2026-01-20T12:00:01Z"))
            case .deliveryReportWorker: try await fixture.handleEvent()
            case .fanOutWorker:
                let names = (0..<1100).map { #""n-\#($0)""# }.joined(separator: ",")
                try await fixture.handleEvent(users: "[\(names)]")
            case .badgeCorrector:
                for app in ["bad", "good"] {
                    try await fixture.pool.execute(
                        "INSERT INTO rules.badge (app, user_id, due_at) VALUES (\(app), '1', \(fixture.clock.now.date))"
                    )
                }
            case .shownCopyClearer: for app in ["bad", "good"] { try await fixture.addShownCopy(app) }
            case .notificationRevoker:
                try await fixture.handleEvent()
                try await fixture.pool.execute("UPDATE rules.decision SET decided_at = clock_timestamp()")
                try await fixture.pool.execute(
                    """
                    INSERT INTO rules.revocation (id, app, event_id, inbox, source, requested_by)
                    SELECT gen_random_uuid(), app, id, 'remove', 'operator', 'desk' FROM rules.event
                    """)
            case .pushRevoker:
                try await fixture.handleEvent()
                try await fixture.pool.execute("UPDATE rules.decision SET decided_at = clock_timestamp()")
                for app in [WorkFailureTests.bad, WorkFailureTests.good] {
                    let person = PersonKey(app: app, user: user("1"))
                    _ = try await PreferenceStore(pool: fixture.pool).change(person) { _ in
                        PersonalSettings(isOn: false)
                    }
                }
            }
        }

        /// Runs the worker until the good app's row is done.
        func work(_ fixture: TwoAppFixture) async throws {
            switch self {
            case .scheduledSendWorker: try await fixture.scheduledSendWorker.releaseDue()
            case .fanOutWorker: while try await fixture.teller.processNext() {}
            case .badgeCorrector: try await fixture.corrector.correctDue()
            case .deliveryReportWorker: try await fixture.deliveryReportWorker.report()
            case .notificationRevoker: try await fixture.notificationRevoker.revokeDue()
            case .shownCopyClearer: try await fixture.shownCopyClearer.clearDue()
            case .pushRevoker:
                try await eventually("the good row is done", within: .seconds(30)) {
                    try await fixture.revoker.revokeDue()
                    return try await fixture.count("rules.preference_change WHERE app = 'good'") == 0
                }
            }
        }

        /// Advances the clock past the leases.
        func wait(_ fixture: TwoAppFixture) async throws {
            fixture.clock.advance(HeldStore.lease)
            try await fixture.pool.execute("UPDATE rules.preference_change SET due_at = '-infinity'")
            try await fixture.pool.execute(
                "UPDATE rules.revocation SET due_at = '-infinity' WHERE due_at IS NOT NULL AND dead_at IS NULL")
        }

        /// The apps with a published message.
        func published(_ fixture: TwoAppFixture) throws -> Set<AppID> {
            switch self {
            case .pushRevoker, .notificationRevoker:
                Set(
                    try fixture.bus.messages(in: StreamName.senderRevocations.rawValue).map {
                        try NotificationRevocation.decode(wireBody: $0.body).app
                    })
            // No queue is bound for reports here.
            case .deliveryReportWorker: [WorkFailureTests.good]
            case .scheduledSendWorker, .fanOutWorker, .badgeCorrector, .shownCopyClearer: try fixture.published()
            }
        }
    }

    /// Adds a trigger that makes statements about the bad app's row fail or run `act`.
    private static func spoil(
        _ poller: Poller, isDeletion: Bool = false, _ condition: SQL, _ fixture: TwoAppFixture,
        with act: SQL = "RAISE 'no'"
    ) async throws {
        let event: SQL = isDeletion ? "DELETE" : "UPDATE"
        let row: SQL = isDeletion ? "OLD" : "NEW"
        let isAlive: SQL = isDeletion ? "true" : "NEW.dead_at IS NULL"
        try await fixture.pool.execute(
            "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \(act); RETURN \(row); END $$")
        try await fixture.pool.execute(
            """
            CREATE TRIGGER spoil BEFORE \(event) ON rules.\(identifier: poller.table.rawValue) FOR EACH ROW
            WHEN (\(poller.isBad) AND \(isAlive) AND \(condition)) EXECUTE FUNCTION spoil()
            """)
    }

    @Test(arguments: Poller.allCases)
    func `a message that the broker always refuses makes a dead row, and the other app goes on`(
        _ poller: Poller
    ) async throws {
        try await WorkerIsolationTests.with(poller.policy) { (fixture: TwoAppFixture) async throws in
            fixture.bus.refuse { $0.routingKey.hasSuffix(".bad") }
            try await poller.prepare(fixture)
            try await poller.work(fixture)
            #expect(try poller.published(fixture) == [Self.good])
            #expect(try await fixture.dead(poller.table) == ["unsendable"])
            let refusals = fixture.bus.refusals
            #expect(refusals >= 1)
            for _ in 0..<3 {
                try await poller.wait(fixture)
                try await poller.work(fixture)
            }
            #expect(fixture.bus.refusals == refusals)
        }
    }

    @Test(arguments: Poller.allCases.filter { $0 != .fanOutWorker })
    func `a row that cannot be leased is marked dead, and the other app goes on`(_ poller: Poller) async throws {
        try await WorkerIsolationTests.with(poller.policy) { (fixture: TwoAppFixture) async throws in
            try await poller.prepare(fixture)
            try await Self.spoil(poller, "NEW.due_at IS NOT NULL", fixture)
            try await poller.work(fixture)
            #expect(try poller.published(fixture) == [Self.good])
            #expect(try await fixture.dead(poller.table) == ["failed"])
        }
    }

    @Test(arguments: Poller.allCases)
    func `a row that cannot be completed is marked dead and not published again`(_ poller: Poller) async throws {
        try await WorkerIsolationTests.with(poller.policy) { (fixture: TwoAppFixture) async throws in
            try await poller.prepare(fixture)
            try await Self.spoil(poller, isDeletion: poller.end.isDeletion, poller.end.condition, fixture)
            try await poller.work(fixture)
            #expect(try await fixture.dead(poller.table) == ["failed"])
            let published = fixture.bus.published.count
            for _ in 0..<2 {
                try await poller.wait(fixture)
                try await poller.work(fixture)
            }
            #expect(fixture.bus.published.count == published)
        }
    }

    @Test func `a row whose statement times out alone is marked dead, and the other app goes on`() async throws {
        try await RulesDatabase.withPool(statementTimeout: .seconds(1)) { (pool: PostgresPool) async throws in
            let fixture = try TwoAppFixture(pool, "{ type: news }")
            try await Poller.badgeCorrector.prepare(fixture)
            try await Self.spoil(.badgeCorrector, "true", fixture, with: "PERFORM pg_sleep(5)")
            try await fixture.corrector.correctDue()
            #expect(try fixture.published() == [Self.good])
            #expect(try await fixture.dead(.badge) == ["failed"])
        }
    }

    @Test(arguments: Poller.allCases.filter { $0 != .fanOutWorker })
    func `a lost connection marks no row`(_ poller: Poller) async throws {
        try await WorkerIsolationTests.with(poller.policy) { (fixture: TwoAppFixture) async throws in
            try await poller.prepare(fixture)
            if poller == .pushRevoker {
                // No older transaction is running.
                try await fixture.pool.execute("UPDATE rules.preference_change SET changed_at = '-infinity'")
            }
            try await Self.spoil(
                poller, "NEW.due_at IS NOT NULL", fixture, with: "RAISE 'away' USING ERRCODE = '57P01'")
            await #expect(throws: (any Error).self) {
                switch poller {
                case .scheduledSendWorker: try await fixture.scheduledSendWorker.releaseDue()
                case .badgeCorrector: try await fixture.corrector.correctDue()
                case .pushRevoker: try await fixture.revoker.revokeDue()
                case .notificationRevoker: try await fixture.notificationRevoker.revokeDue()
                case .shownCopyClearer: try await fixture.shownCopyClearer.clearDue()
                case .deliveryReportWorker, .fanOutWorker: try await fixture.deliveryReportWorker.report()
                }
            }
            #expect(try await fixture.dead(poller.table).isEmpty)
        }
    }

    @Test func `badge corrections too large for one message are split`() async throws {
        try await WorkerIsolationTests.with("{ type: news }") { (fixture: TwoAppFixture) async throws in
            try await fixture.pool.execute(
                """
                INSERT INTO rules.badge (app, user_id, due_at)
                SELECT 'good', n::text, \(fixture.clock.now.date) FROM generate_series(1, 5) AS n
                """)
            fixture.bus.refuse { message in
                ((try? Notification.decode(wireBody: message.body))?.recipients.count ?? 0) > 2
            }
            try await fixture.corrector.correctDue()
            let sent = try fixture.bus.published.flatMap { try Notification.decode(wireBody: $0.body).recipients }
            #expect(Set(sent.map(\.user.rawValue)) == ["1", "2", "3", "4", "5"] && sent.count == 5)
            #expect(try await fixture.count("rules.badge") == 0)
        }
    }

    @Test func `an old row that cannot be deleted stays alone, in tombstones and history`() async throws {
        try await WorkerIsolationTests.with("{ type: news }") { (fixture: TwoAppFixture) async throws in
            let old = (fixture.clock.now - .seconds(400 * 86_400)).date
            for app in ["bad", "good"] {
                try await fixture.pool.execute(
                    """
                    INSERT INTO rules.told (app, user_id, key, until)
                    SELECT \(app), n::text, 'k', \(old) FROM generate_series(1, 20) AS n
                    """)
                try await fixture.pool.execute(
                    """
                    INSERT INTO rules.inbox (notification, app, user_id, saying, at)
                    SELECT gen_random_uuid(), \(app), n::text, gen_random_uuid(), \(old) + n * interval '1 minute'
                    FROM generate_series(1, 20) AS n
                    """)
            }
            try await fixture.pool.execute(
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$")
            for table: SQL in ["told", "inbox"] {
                try await fixture.pool.execute(
                    """
                    CREATE TRIGGER refuse BEFORE DELETE ON rules.\(table) FOR EACH ROW
                    WHEN (OLD.app = 'bad' AND OLD.user_id IN ('3', '7')) EXECUTE FUNCTION refuse()
                    """)
            }
            let log = CapturingLogger()
            let sweeper = Sweeper(
                tombstones: TombstoneStore(pool: fixture.pool), history: HistoryStore(pool: fixture.pool, step: 10),
                terms: .usual, pause: .zero, now: { fixture.clock.now }, logger: log.logger)
            await #expect(throws: PostgresError.self) { try await sweeper.sweep() }
            for table: SQL in ["rules.told", "rules.inbox"] {
                let left = try await fixture.pool.query("SELECT app || ' ' || user_id FROM \(table) ORDER BY 1").map {
                    try $0.decode(String.self, at: 0)
                }
                #expect(left == ["bad 3", "bad 7"])
            }
            let lines = log.lines.filter { $0.message.contains("Old rows cannot be deleted") }
            #expect(Set(lines.map { "\($0.metadata["table"] ?? "")" }) == ["rules.told", "rules.inbox"])
        }
    }

    @Test func `an app that cannot be counted does not stop the count of others`() async throws {
        try await WorkerIsolationTests.with("{ type: news }") { (fixture: TwoAppFixture) async throws in
            try await fixture.handleEvent()
            try await fixture.pool.execute("ALTER TABLE rules.tally ADD CONSTRAINT no_bad CHECK (app <> 'bad')")
            let store = StatsStore(pool: fixture.pool, logger: .silent)
            #expect(try await store.count(now: fixture.clock.now).contains(StatsRollupPlan.hour(of: fixture.clock.now)))
            #expect(try await fixture.count("rules.tally WHERE app = 'good'") == 1)
            // It is counted when the hour is due again.
            #expect(try await store.count(now: fixture.clock.now).isEmpty)
            try await fixture.pool.execute("ALTER TABLE rules.tally DROP CONSTRAINT no_bad")
            fixture.clock.advance(StatsRollupPlan.pace)
            try await store.count(now: fixture.clock.now)
            #expect(try await fixture.count("rules.tally") == 2)
        }
    }
}

extension WorkerIsolationTests.TwoAppFixture {
    fileprivate var corrector: BadgeCorrector {
        BadgeCorrector(
            service: "rules", store: BadgeStore(pool: pool, logger: .silent), currentRules: currentRules, bus: bus,
            now: { clock.now }, logger: .silent)
    }

    fileprivate var deliveryReportWorker: DeliveryReportWorker {
        DeliveryReportWorker(
            service: "rules", store: ReportStore(pool: pool, logger: .silent), bus: bus, now: { clock.now },
            logger: .silent)
    }

    fileprivate var revoker: PushRevoker {
        PushRevoker(
            service: "rules", store: PreferenceChangeStore(pool: pool, logger: .silent), currentRules: currentRules,
            bus: bus,
            now: { clock.now }, logger: .silent)
    }
}

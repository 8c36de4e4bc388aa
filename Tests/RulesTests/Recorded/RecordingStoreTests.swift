import Foundation
import Messaging
import Postgres
import PushProtocol
import ServiceKit
import Testing
import TestSupport

@testable import DecisionLog
@testable import RuleDryRun
@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// Recordings on a real database: what the service stores, and what erasure and retention delete.
@Suite(.timeLimit(.minutes(20))) struct RecordingStoreTests {
    static let count = ProcessInfo.processInfo.environment["HELIOGRAPH_REHEARSALS"].flatMap(Int.init) ?? 200
    static let app = AppID(rawValue: "test")!

    private static let rules = """
        app: test
        types: { news: { about: News } }
        events:
          thing.happened: { examples: [{ users: [1], name: Pat }] }
        rules:
          only:
            when: { event: thing.happened }
            to: { users: users }
            say: { body: "{{name}}" }
            policy: { type: news }
        """

    // MARK: - Replay

    /// All recordings of some apps, read as the command does.
    static func comparison(
        _ old: RuleSets, _ new: RuleSets, _ pool: PostgresPool, spread: Duration = .zero
    ) async throws -> RecordedComparison {
        var comparison = RecordedComparison(old, new, spread: spread)
        let log = RecordingLog(pool)
        var last: RecordingLog.Row?
        repeat {
            let rows = try await log.page(of: comparison.apps, from: .distantPast, after: last)
            let recordings = try rows.map { row in
                Recording(
                    app: try #require(AppID(rawValue: row.app)), event: row.event, ruleSet: row.ruleSet,
                    at: Timestamp(row.at), count: row.decisions,
                    body: try #require(try Recording.Body(kind: row.kind, text: row.body)))
            }
            let keys = comparison.process(recordings)
            var logged: [ReplayCheck.Key: RuleDecision] = [:]
            for one in try await log.decisions(on: Set(keys.map(\.notification))) {
                let answer = try #require(
                    RuleDecision.Answer(word: one.answer, until: one.until.map(Timestamp.init)))
                logged[.init(notification: one.notification, step: one.step)] = RuleDecision(
                    answer: answer, reason: try #require(RuleDecision.Cause(rawValue: one.reason)))
            }
            comparison.compare(logged)
            last = rows.last
        } while last != nil
        return comparison
    }

    @Test func `random scenarios on the service are reproduced, and their dry run sends the same pushes`() async throws
    {
        for first in stride(from: 0, to: Self.count, by: 100) {
            let scenarios = (first..<min(first + 100, Self.count)).map { RandomScenario(seed: 8_000 + UInt64($0)) }
            try await RulesDatabase.withPool { pool in
                var service = ServedScenarios(scenarios, pool, isRecorded: true)
                let served = try await service.run(until: DryRunDifferentialTests.end)
                let rules = RuleSets(scenarios.map(\.rules))
                var comparison = try await Self.comparison(rules, rules, pool)
                #expect(comparison.check.differing.isEmpty, "\(comparison.check.differing.prefix(3))")
                #expect(comparison.check.unlogged == 0 && comparison.check.obstacles.isEmpty)
                // Every decision is reproduced, except those that withdraw a waiting notification.
                let made: Int = try await pool.query(
                    """
                    SELECT count(*) FROM rules.decision
                    WHERE NOT (step > 0 AND answer = 'drop' AND reason IN ('done', 'replaced', 'revoked'))
                    """
                ).single()
                #expect(comparison.check.reproduced == made)
                #expect(comparison.result().isClean)
                for scenario in scenarios {
                    var expected = served[scenario.app]?.pushes.filter { !$0.contains(BadgeCorrection.rule) } ?? []
                    var dry = ScenarioResult()
                    // The service ran until then, and the comparison as long as something is held.
                    let past = comparison.oldPredictions.filter { $0.at <= DryRunDifferentialTests.end }
                    for prediction in past where prediction.app == scenario.rules.app {
                        guard prediction.rule != BadgeCorrection.rule, let push = prediction.notification else {
                            continue
                        }
                        try dry.push(push, at: prediction.at)
                    }
                    expected.sort()
                    dry.sort()
                    #expect(Self.withoutBadge(dry.pushes) == Self.withoutBadge(expected), "\(scenario.app)")
                }
            }
        }
    }

    /// A badge counts unread items, which the inbox of a user may have from the time before the recording.
    private static func withoutBadge(_ pushes: [String]) -> [String] {
        pushes.map { line in
            var words = line.split(separator: " ")
            if words.count > 3 { words[3] = "-" }
            return words.joined(separator: " ")
        }.sorted()
    }

    @Test func `the steps of a fan-out are recorded and reproduced`() async throws {
        try await RulesDatabase.withPool { pool in
            let crowd = try LargeAudienceTests.FanOutFixture(pool)
            try await crowd.addMembers(1_300)
            let decisions = DecisionStore(pool: pool, spread: .zero, recordedApps: { [Self.app] })
            let handler = EventHandler(currentRules: crowd.currentRules, store: decisions, now: { crowd.clock.now })
            let body = cloudEvent(id: "e-1", data: #"{"team":"t","users":["1"],"name":"Kim"}"#)
            let inbound = delivered(body).at(crowd.clock.now)
            _ = try await handler.handle([Delivery(inbound: inbound, message: try handler.decode(inbound))])
            let store = FanOutStore(decisions: decisions)
            var steps = 0
            advancing: while true {
                switch try await store.advance(by: crowd.currentRules.ruleSets, now: crowd.clock.now) {
                case .nothing: break advancing
                case .advanced: continue
                case .decided(let step):
                    steps += 1
                    try await store.confirm(step, now: crowd.clock.now)
                }
            }
            #expect(steps >= 3)
            let rules = crowd.currentRules.ruleSets
            var comparison = try await Self.comparison(rules, rules, pool)
            let made = try await RulesDatabase.count("rules.decision", pool)
            #expect(made > 1_300 && comparison.check.reproduced == made)
            #expect(comparison.check.differing.isEmpty && comparison.check.obstacles.isEmpty)
            let result = comparison.result()
            #expect(result.isClean && comparison.oldPredictions.count == made)
            // The recording of the event has the event once, the steps only their users.
            let bodies = try await pool.query(
                "SELECT kind, count(*) FROM rules.recording WHERE body::text LIKE '%\"Kim\"%' GROUP BY kind")
            #expect(try bodies.map { try $0.decode(String.self, at: 0) } == ["event"])
        }
    }

    // MARK: - What is stored

    private func handle(
        _ id: String, users: String, time: Timestamp? = nil, _ pool: PostgresPool, recorded: Bool = true,
        now: Timestamp = DecisionStoreTests.now
    ) async throws {
        let store = DecisionStore(pool: pool, recordedApps: { recorded ? [Self.app] : [] })
        let handler = EventHandler(
            currentRules: CurrentRules(RuleSets([try parse(Self.rules)])), store: store, now: { now })
        let extra = time.map { #","time":"\#(RFC3339.string(from: $0.date))""# } ?? ""
        let inbound = delivered(
            cloudEvent(id: id, data: #"{"users":\#(users),"name":"Pat"}"#, extra: extra)
        ).at(now)
        _ = try await handler.handle([Delivery(inbound: inbound, message: try handler.decode(inbound))])
    }

    private func events(_ pool: PostgresPool) async throws -> [String] {
        try await pool.query("SELECT body -> 'event' ->> 'id' FROM rules.recording ORDER BY 1").column(String.self)
    }

    @Test func `an app without the setting stores nothing, and a repeated event is recorded once`() async throws {
        try await RulesDatabase.withPool { pool in
            try await handle("off", users: "[1]", pool, recorded: false)
            #expect(try await RulesDatabase.count("rules.recording", pool) == 0)
            try await handle("on", users: "[1]", pool)
            try await handle("on", users: "[1]", pool)
            #expect(try await events(pool) == ["on"])
        }
    }

    @Test func `erasure deletes the recordings that name a user, and later ones of earlier events`() async throws {
        try await RulesDatabase.withPool { pool in
            try await handle("both", users: #"["erin","kim"]"#, pool)
            try await handle("kim", users: #"["kim"]"#, pool)
            try await handle("longer", users: #"["erin-2"]"#, pool)
            let erin = PersonKey(app: Self.app, user: user("erin"))
            let erased = DecisionStoreTests.now + .seconds(60)
            #expect(try await ErasureStore(pool: pool).erase(erin, at: erased, now: erased))
            #expect(try await events(pool) == ["kim", "longer"])
            // An event from before the erasure that arrives late.
            try await handle(
                "late", users: #"["erin","kim"]"#, time: erased - .seconds(5), pool, now: erased + .seconds(5))
            try await handle("late-2", users: #"["kim"]"#, time: erased - .seconds(5), pool, now: erased + .seconds(5))
            try await handle("new", users: #"["erin"]"#, time: erased + .seconds(1), pool, now: erased + .seconds(5))
            #expect(try await events(pool) == ["kim", "late-2", "longer", "new"])
        }
    }

    @Test func `recordings go after their days, above the limit, and when the setting goes`() async throws {
        try await RulesDatabase.withPool { pool in
            let now = DecisionStoreTests.now
            for age in 0..<6 {
                try await handle("e-\(age)", users: "[1]", pool, now: now - .seconds(86_400 * age))
            }
            let store = RecordingStore(pool: pool)
            #expect(try await store.sweep([Self.app: RecordingTerms(days: 4)], now: now).deleted == 2)
            #expect(try await events(pool) == ["e-0", "e-1", "e-2", "e-3"])
            #expect(try await store.sweep([Self.app: RecordingTerms(days: 4, limit: 3)], now: now).deleted == 1)
            #expect(try await events(pool) == ["e-0", "e-1", "e-2"])
            let terms = [Self.app: RecordingTerms(days: 90, limit: 3)]
            #expect(try await store.sweep(terms, now: now).deleted == 0)
            #expect(try await store.sweep([:], now: now).deleted == 3)
        }
    }

    @Test func `the group of the comparison reads recordings and decisions, and nothing else`() async throws {
        try await RulesDatabase.withPool { pool in
            let tables = try await pool.query(
                """
                SELECT DISTINCT table_name::text FROM information_schema.role_column_grants
                WHERE grantee = 'heliograph_recordings' ORDER BY 1
                """
            ).column(String.self)
            #expect(tables == ["decision", "recording"])
            let rights = try await pool.query(
                """
                SELECT DISTINCT privilege_type::text FROM information_schema.role_column_grants
                WHERE grantee = 'heliograph_recordings'
                """
            ).column(String.self)
            #expect(rights == ["SELECT"])
            try await handle("e", users: "[1]", pool)
            let page = try await pool.transaction { transaction in
                try await transaction.execute("SET LOCAL ROLE heliograph_recordings")
                _ = try await transaction.query(
                    "SELECT id, app, kind, event, rule_set, at, decisions, body FROM rules.recording")
                return try await transaction.query(
                    "SELECT notification, step, answer, reason, until FROM rules.decision"
                ).count
            }
            #expect(page == 1)
        }
    }
}

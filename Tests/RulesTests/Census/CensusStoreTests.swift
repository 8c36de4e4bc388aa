import DecisionLog
import Foundation
import Logging
import Messaging
import Postgres
import PushProtocol
import ServiceKit
import Synchronization
import Testing
import TestSupport

@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// The census of the service's own tables.
@Suite(.timeLimit(.minutes(3))) struct CensusStoreTests {
    static let app = AppID(rawValue: "test")!

    /// A service with a census. All queues are empty, and every service reports.
    struct CensusFixture: Sendable {
        let rules: DecisionStoreTests.DecisionFixture
        let worker: CensusWorker
        let processes: [String: UUID]
        let reports: CensusReportStore

        init(_ pool: PostgresPool) throws {
            rules = try DecisionStoreTests.DecisionFixture(pool)
            reports = CensusReportStore(pool: pool)
            worker = CensusFixture.worker(pool, rules.clock)
            let services = ["rules", "token-registry", "apns-sender", "fcm-sender", "webpush-sender", "feedback"]
            processes = Dictionary(uniqueKeysWithValues: services.map { ($0, UUID()) })
        }

        static func worker(_ pool: PostgresPool, _ clock: DecisionStoreTests.Clock) -> CensusWorker {
            CensusWorker(
                store: CensusStore(pool: pool), reports: CensusReportStore(pool: pool), table: CensusTable(pool),
                apps: [app], probe: { _, _ in (0, 1) }, now: { clock.now }, logger: .silent)
        }

        var pool: PostgresPool { rules.pool }

        func report(_ service: String, _ settled: [UUID] = [], retried: (UUID, Timestamp)? = nil) async throws {
            var report = CensusReport(
                trace: Trace(id: UUID(), correlation: "census", causation: "census"), service: service,
                process: processes[service]!, at: rules.clock.now, oldest: nil)
            for id in settled { report.settled.append(id) }
            if let (id, until) = retried { report.retried.append(id, at: until) }
            try await reports.keep([report], now: rules.clock.now)
        }

        /// Lets time pass: every third second each process reports and the census advances.
        func pass(_ seconds: Int) async throws {
            for _ in 0..<(seconds / 3) {
                rules.clock.advance(.seconds(3))
                for service in processes.keys { try await report(service) }
                try await worker.advance()
            }
        }

        func census() async throws -> Census { try await CensusTable(pool).read(app: nil) }

        /// `state number` of each row.
        func states() async throws -> [String] {
            try await census().rows.map { "\($0.state) \($0.number)" }
        }

        func notification(_ user: String) async throws -> UUID {
            try await pool.query(
                """
                SELECT notification FROM rules.decision WHERE user_id = \(user) ORDER BY decided_at DESC, step DESC LIMIT 1
                """
            ).single()
        }

        func answer(_ user: String, _ answer: Outcome.Answer, origin: Outcomes.Origin = .apns) async throws {
            try await OutcomeStore(pool: pool).keep([
                Outcomes(
                    trace: Trace(id: UUID(), correlation: "e", causation: "e"), app: app, origin: origin,
                    environment: nil, lane: .interactive,
                    outcomes: [
                        Outcome(
                            notification: try await notification(user), device: UUID(), answer: answer,
                            at: rules.clock.now, registeredAt: nil)
                    ])
            ])
        }
    }

    @Test func `every notification has one state, and the sum is the number of notifications`() async throws {
        try await RulesDatabase.withPool { pool in
            let fixture = try CensusFixture(pool)
            try await fixture.pass(30)
            try await fixture.rules.setPreferences(PersonalSettings(isOn: false), user: "2")
            let night = PersonalSettings(quietHours: DecisionStoreTests.night)
            try await fixture.rules.setPreferences(night, user: "3")
            _ = try await fixture.rules.handleEvent("e1", users: "[1,2,3,4,5,6,7]")
            _ = try await fixture.rules.handleEvent("e2", users: "[]", room: 99)
            try await fixture.answer("1", .accepted(id: nil))
            try await fixture.answer("4", .skipped(reason: "no-device"), origin: .registry)
            try await fixture.answer("5", .expired)
            try await fixture.answer("6", .rejected(reason: "BadTopic", suspectToken: false))
            try await fixture.report("feedback", [try await fixture.notification("6")])
            try await fixture.pass(30)
            let seventh = try await fixture.states().filter { $0.hasPrefix("missing") || $0.hasPrefix("at-") }
            #expect(seventh.count == 1)
            try await fixture.answer("7", .accepted(id: nil))
            // The second count of the interval, which finds events without a recipient.
            try await fixture.pass(48)
            let (states, census) = (Set(try await fixture.states()), try await fixture.census())
            #expect(
                states == [
                    "accepted 2", "inbox 1", "held 1", "skipped 1", "expired 1", "failed 1", "no-recipient 1",
                ])
            #expect(census.total == 8)
            #expect(census.gaps.isEmpty)
        }
    }

    @Test(arguments: [
        ([String](), "missing-registry"), (["token-registry"], "missing-sender"),
        (["token-registry", "apns-sender"], "missing-outcomes"),
    ])
    func `a lost push is found within a minute, with its stage, and is gone with its outcome`(
        settledBy services: [String], state: String
    ) async throws {
        try await RulesDatabase.withPool { pool in
            let fixture = try CensusFixture(pool)
            try await fixture.pass(30)
            _ = try await fixture.rules.handleEvent("e1", users: "[1,2]")
            try await fixture.answer("2", .accepted(id: nil))
            let lost = try await fixture.notification("1")
            for service in services { try await fixture.report(service, [lost]) }
            try await fixture.pass(57)
            #expect(Set(try await fixture.states()) == ["accepted 1", "\(state) 1"])
            let gap = try #require(try await fixture.census().gaps.first)
            #expect(gap.notification == lost && gap.event == "e1" && gap.state == state && gap.number == 1)
            // The reports are gone after a while, and the stage stays.
            fixture.rules.clock.advance(.seconds(3600))
            try await fixture.pass(63)
            #expect(try await fixture.census().gaps.map(\.state) == [state])
            try await fixture.answer("1", .accepted(id: nil))
            try await fixture.pass(9)
            #expect(try await fixture.census().gaps.isEmpty)
        }
    }

    /// Feedback gets the outcome too, so the census looks at this notification further.
    @Test func `a lost push that arrives late and is refused for its token is no longer missing`() async throws {
        try await RulesDatabase.withPool { pool in
            let fixture = try CensusFixture(pool)
            try await fixture.pass(30)
            _ = try await fixture.rules.handleEvent("e1", users: "[1]")
            try await fixture.pass(57)
            #expect(try await fixture.states() == ["missing-registry 1"])
            try await fixture.answer("1", .unregistered(since: nil, reason: "Unregistered"))
            try await fixture.report("feedback", [try await fixture.notification("1")])
            try await fixture.pass(9)
            #expect(try await fixture.census().gaps.isEmpty)
            #expect(try await fixture.states() == ["failed 1"])
        }
    }

    @Test func `evidence that did not reach feedback is missing there`() async throws {
        try await RulesDatabase.withPool { pool in
            let fixture = try CensusFixture(pool)
            try await fixture.pass(30)
            _ = try await fixture.rules.handleEvent("e1", users: "[1,2]")
            for user in ["1", "2"] {
                try await fixture.answer(user, .unregistered(since: nil, reason: "Unregistered"))
            }
            try await fixture.report("feedback", [try await fixture.notification("2")])
            try await fixture.pass(57)
            #expect(Set(try await fixture.states()) == ["failed 1", "missing-feedback 1"])
        }
    }

    @Test func `a retried push is not missing before its return`() async throws {
        try await RulesDatabase.withPool { pool in
            let fixture = try CensusFixture(pool)
            try await fixture.pass(30)
            _ = try await fixture.rules.handleEvent("e1")
            let id = try await fixture.notification("1")
            try await fixture.report("token-registry", retried: (id, fixture.rules.clock.now + .seconds(300)))
            try await fixture.pass(120)
            #expect(try await fixture.states() == ["retrying 1"])
        }
    }

    @Test func `held notifications count once, before and after their release`() async throws {
        try await RulesDatabase.withPool { pool in
            let fixture = try CensusFixture(pool)
            try await fixture.pass(30)
            try await fixture.rules.setPreferences(PersonalSettings(quietHours: DecisionStoreTests.night))
            _ = try await fixture.rules.handleEvent("e1")
            try await fixture.pass(36)
            #expect(try await fixture.states() == ["held 1"])
            fixture.rules.clock.advance(.seconds(4 * 3600))
            #expect(try await fixture.rules.release() == ["1"])
            try await fixture.answer("1", .accepted(id: nil))
            try await fixture.pass(36)
            #expect(try await fixture.states() == ["accepted 1"])
        }
    }

    @Test func `settled notifications leave after an hour, and reports that nothing needs are deleted`() async throws {
        try await RulesDatabase.withPool { pool in
            let fixture = try CensusFixture(pool)
            try await fixture.pass(30)
            _ = try await fixture.rules.handleEvent("e1")
            try await fixture.answer("1", .accepted(id: nil))
            try await fixture.pass(90)
            #expect(try await fixture.states() == ["accepted 1"])
            fixture.rules.clock.advance(.seconds(3600))
            try await fixture.pass(63)
            #expect(try await fixture.states() == [])
            #expect(try await RulesDatabase.count("rules.census_report", pool) <= 21 * fixture.processes.count)
        }
    }

    @Test func `one of two processes counts, and the other continues when it stops`() async throws {
        try await RulesDatabase.withPool { pool in
            let clock = DecisionStoreTests.Clock(DecisionStoreTests.now)
            let store = CensusStore(pool: pool)
            let (first, second) = (UUID(), UUID())
            #expect(try await store.lead(first, now: clock.now))
            #expect(try await !store.lead(second, now: clock.now))
            clock.advance(.seconds(10))
            #expect(try await store.lead(first, now: clock.now))
            clock.advance(.seconds(10))
            #expect(try await !store.lead(second, now: clock.now))
            clock.advance(.seconds(6))
            #expect(try await store.lead(second, now: clock.now))
            #expect(try await !store.lead(first, now: clock.now))
            try await store.release(second)
            #expect(try await store.lead(first, now: clock.now))
        }
    }
}

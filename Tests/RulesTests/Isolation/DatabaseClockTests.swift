import Foundation
import Logging
import Messaging
import Postgres
import PushProtocol
import ServiceConnections
import ServiceKit
import Synchronization
import Testing
import TestSupport

@testable import RuleLanguage
@testable import Rules

/// The clock that processes share through the database.
@Suite(.timeLimit(.minutes(4))) struct DatabaseClockTests {
    /// A machine with a monotonic clock and a database clock, both set by the test.
    final class Machine: Sendable {
        struct State {
            var uptime = ContinuousClock.now
            var database = Timestamp(milliseconds: 1_000_000)
            var roundTrip = Duration.zero
            var readings = 0
        }
        let state = Mutex(State())

        var clock: DatabaseClock {
            DatabaseClock(
                read: {
                    self.state.withLock { state in
                        state.uptime += state.roundTrip / 2
                        let time = state.database
                        state.uptime += state.roundTrip / 2
                        state.readings += 1
                        return time
                    }
                }, uptime: { self.state.withLock { $0.uptime } })
        }
    }

    @Test func `the monotonic clock extrapolates a reading, and an old reading is refreshed`() async throws {
        let machine = Machine()
        let clock = machine.clock
        #expect(try await clock.now() == Timestamp(milliseconds: 1_000_000))
        machine.state.withLock { $0.uptime += .seconds(10) }
        #expect(try await clock.now() == Timestamp(milliseconds: 1_010_000))
        #expect(machine.state.withLock { $0.readings } == 1)
        // The database's clock was corrected meanwhile.
        machine.state.withLock { state in
            state.uptime += DatabaseClock.maximumAge
            state.database = Timestamp(milliseconds: 2_000_000)
        }
        #expect(try await clock.now() == Timestamp(milliseconds: 2_000_000))
        #expect(machine.state.withLock { $0.readings } == 2)
    }

    @Test func `a reading is dated at half of the round trip`() async throws {
        let machine = Machine()
        machine.state.withLock { $0.roundTrip = .milliseconds(400) }
        #expect(try await machine.clock.now() == Timestamp(milliseconds: 1_000_200))
    }

    @Test func `a less accurate reading does not replace a consistent one`() async throws {
        let machine = Machine()
        let clock = machine.clock
        machine.state.withLock { $0.roundTrip = .milliseconds(2) }
        #expect(try await clock.now() == Timestamp(milliseconds: 1_000_001))
        // A slow network: the database read its clock at the begin of the round trip.
        machine.state.withLock { state in
            state.uptime += .seconds(20)
            state.database = Timestamp(milliseconds: 1_020_001)
            state.roundTrip = .milliseconds(400)
        }
        #expect(try await clock.now() == Timestamp(milliseconds: 1_020_401))
        #expect(machine.state.withLock { $0.readings } == 2)
    }

    @Test func `a less accurate reading replaces one that it contradicts`() async throws {
        let machine = Machine()
        let clock = machine.clock
        #expect(try await clock.now() == Timestamp(milliseconds: 1_000_000))
        machine.state.withLock { state in
            state.uptime += .seconds(20)
            state.database = Timestamp(milliseconds: 1_019_000)
            state.roundTrip = .milliseconds(400)
        }
        #expect(try await clock.now() == Timestamp(milliseconds: 1_019_200))
    }

    @Test func `without a database, reading the time fails`() async throws {
        struct Away: Error {}
        let clock = DatabaseClock(read: { throw Away() })
        await #expect(throws: Away.self) { try await clock.now() }
    }

    @Test func `two processes with clocks 60 seconds apart publish each item once`() async throws {
        try await WorkerIsolationTests.with("{ schedule: { at: at } }") {
            (fixture: WorkerIsolationTests.TwoAppFixture) async throws in
            let store = HeldStore(pool: fixture.pool, spread: .zero, logger: .silent)
            let ruleSets = fixture.currentRules.ruleSets
            // The second machine's monotonic clock is one minute ahead. Its wall clock has no effect.
            let clocks = [Duration.zero, .seconds(60)].map { ahead in
                DatabaseClock(
                    read: { Timestamp(try await fixture.pool.query("SELECT clock_timestamp()").single(Date.self)) },
                    uptime: { ContinuousClock.now + ahead })
            }
            let times = [try await clocks[0].now(), try await clocks[1].now()]
            #expect(times[1] - times[0] < .seconds(10))
            try await fixture.handleEvent(users: "[1,2,3]")
            // A clock may lag by half of a slow round trip.
            try await fixture.pool.execute("UPDATE rules.held SET due_at = clock_timestamp() - interval '10 seconds'")
            let first = try await store.release(by: ruleSets, now: try await clocks[0].now())
            #expect(first.released.count == 6)
            // The first process holds the lease, and the other does not take it.
            #expect(try await store.release(by: ruleSets, now: try await clocks[1].now()).taken == 0)
            // With wall clocks, the other process would take all leases at once.
            #expect(try await store.release(by: ruleSets, now: times[0] + .seconds(60)).taken == 6)
        }
    }

    /// Registry files that may use the local clock: two compare an expiration, one dates a report.
    private static let exempt = [
        "Service/Handlers/NotificationHandler.swift", "Service/Workers/CampaignSteps.swift",
        "Service/Workers/RegistrationCounts.swift",
    ]

    @Test(arguments: [("Rules", 120), ("Feedback", 15), ("TokenRegistry", 45)])
    func `no lease or due time of a service uses the local clock`(service: String, least: Int) throws {
        let services = URL(filePath: Shipped.directory).deletingLastPathComponent().deletingLastPathComponent()
        let wall = /Timestamp\.now|Timestamp = \.now|\?\? \.now|-> Timestamp = \{ \.now|: \{ \.now \}|\bDate\(\)/
        let folder = services.appending(path: service)
        var files = 0
        for name in try FileManager.default.subpathsOfDirectory(atPath: folder.path) where name.hasSuffix(".swift") {
            if service == "TokenRegistry", Self.exempt.contains(name) { continue }
            let text = try String(contentsOf: folder.appending(path: name), encoding: .utf8)
            #expect(text.firstMatch(of: wall) == nil, "\(service)/\(name)")
            files += 1
        }
        #expect(files > least)
    }
}

import Foundation
import Logging
import Messaging
import Postgres
import PushProtocol
import ServiceKit
import Synchronization
import TestSupport
import Testing

@testable import Rules

/// The time that processes share.
@Suite(.timeLimit(.minutes(4))) struct DatabaseClockTests {
    /// A machine: its monotonic clock, and a database whose clock reads what the test says.
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

    @Test func `a reading is carried on by the monotonic clock, and taken again when it is old`() async throws {
        let machine = Machine()
        let clock = machine.clock
        #expect(try await clock.now() == Timestamp(milliseconds: 1_000_000))
        machine.state.withLock { $0.uptime += .seconds(10) }
        #expect(try await clock.now() == Timestamp(milliseconds: 1_010_000))
        #expect(machine.state.withLock { $0.readings } == 1)
        // The database's clock was put right meanwhile.
        machine.state.withLock { state in
            state.uptime += DatabaseClock.maximumAge
            state.database = Timestamp(milliseconds: 2_000_000)
        }
        #expect(try await clock.now() == Timestamp(milliseconds: 2_000_000))
        #expect(machine.state.withLock { $0.readings } == 2)
    }

    @Test func `the way to the database and back is half each`() async throws {
        let machine = Machine()
        machine.state.withLock { $0.roundTrip = .milliseconds(400) }
        #expect(try await machine.clock.now() == Timestamp(milliseconds: 1_000_200))
    }

    @Test func `without a database there is no time`() async throws {
        struct Away: Error {}
        let clock = DatabaseClock(read: { throw Away() })
        await #expect(throws: Away.self) { try await clock.now() }
    }

    @Test func `two processes whose machines are 60 seconds apart publish each item once`() async throws {
        try await WorkerIsolationTests.with("{ schedule: { at: at } }") {
            (place: WorkerIsolationTests.Place) async throws in
            let store = HeldStore(pool: place.pool, spread: .zero, logger: .silent)
            let book = place.shelf.book
            // The second machine has been up for a minute longer, which is all of a machine's own that counts.
            let clocks = [Duration.zero, .seconds(60)].map { ahead in
                DatabaseClock(
                    read: { Timestamp(try await place.pool.query("SELECT clock_timestamp()").single(Date.self)) },
                    uptime: { ContinuousClock.now + ahead })
            }
            let times = [try await clocks[0].now(), try await clocks[1].now()]
            #expect(times[1] - times[0] < .seconds(10))
            try await place.happen(users: "[1,2,3]")
            // A clock may be behind by half of a slow round trip.
            try await place.pool.execute("UPDATE rules.held SET due_at = clock_timestamp() - interval '10 seconds'")
            let first = try await store.release(by: book, now: try await clocks[0].now())
            #expect(first.releases.count == 6)
            // Leased by the one, and not taken over by the other.
            #expect(try await store.release(by: book, now: try await clocks[1].now()).taken == 0)
            // With wall clocks the other would take everything over at once.
            #expect(try await store.release(by: book, now: times[0] + .seconds(60)).taken == 6)
        }
    }

    /// Files of the registry that share no time with another process: two compare an expiration, one dates a report.
    private static let exempt = [
        "Handlers/NotificationHandler.swift", "Upkeep/CampaignSteps.swift", "Upkeep/Census.swift",
    ]

    @Test(arguments: [("Rules", 120), ("Feedback", 15), ("TokenRegistry", 45)])
    func `no lease or due time of a service goes by the clock of its own machine`(service: String, least: Int) throws {
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

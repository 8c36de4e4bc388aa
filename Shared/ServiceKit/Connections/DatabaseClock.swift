import FoundationEssentials
import Messaging
package import Postgres
package import PushProtocol
import Synchronization

/// The database's time, by which all processes of a service go: one process compares the leases and due times of another.
///
/// A reading of the database's clock is carried on by this machine's monotonic clock, and taken again when it is old. The
/// wall clock of the machine has no part in it: it may be wrong, and it may jump.
package final class DatabaseClock: Sendable {
    /// How long a reading is carried on.
    package static let maximumAge = Duration.seconds(15)
    /// A reading that took longer is worse than one that is a little old.
    package static let longestRoundTrip = Duration.seconds(1)

    private struct Reading {
        var time: Timestamp
        var at: ContinuousClock.Instant
    }

    private let read: @Sendable () async throws -> Timestamp
    private let uptime: @Sendable () -> ContinuousClock.Instant
    private let last = Mutex<Reading?>(nil)

    /// - Parameters:
    ///   - read: the database's time.
    ///   - uptime: the machine's monotonic clock.
    package init(
        read: @escaping @Sendable () async throws -> Timestamp,
        uptime: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }
    ) {
        self.read = read
        self.uptime = uptime
    }

    package convenience init(_ pool: PostgresPool) {
        self.init(read: {
            try await Outage.ofDatabase {
                Timestamp(try await pool.query("SELECT clock_timestamp()").single(Date.self))
            }
        })
    }

    /// The database's time now.
    ///
    /// - Throws: `Outage` when the last reading is too old and the database is away.
    package func now() async throws -> Timestamp {
        if let time = carriedOn() { return time }
        let begin = uptime()
        let time = try await read()
        let end = uptime()
        // The database read its clock somewhere between: half of the way is the least mistake.
        let reading = Reading(time: time + (end - begin) / 2, at: end)
        last.withLock { last in
            if last == nil || end - begin <= Self.longestRoundTrip { last = reading }
        }
        return reading.time
    }

    private func carriedOn() -> Timestamp? {
        let uptime = uptime()
        return last.withLock { last in
            guard let last, uptime - last.at <= Self.maximumAge else { return nil }
            return last.time + (uptime - last.at)
        }
    }
}

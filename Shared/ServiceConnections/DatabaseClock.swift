package import Postgres
package import PushProtocol
import FoundationEssentials
import Messaging
import ServiceKit
import Synchronization

/// The database's time, shared by all processes of a service, which compare leases and due times of one another.
///
/// Extrapolates a reading of the database's clock with the monotonic clock, and renews it when it is old. Does not use
/// the machine's wall clock, which may be wrong or jump.
package final class DatabaseClock: Sendable {
    /// The age at which a reading is renewed.
    package static let maximumAge = Duration.seconds(15)
    /// A reading with a longer round trip is less accurate than the last one and is discarded.
    package static let longestRoundTrip = Duration.seconds(1)

    private struct Reading {
        var time: Timestamp
        var at: ContinuousClock.Instant
    }

    private let read: @Sendable () async throws -> Timestamp
    private let uptime: @Sendable () -> ContinuousClock.Instant
    private let last = Mutex<Reading?>(nil)

    /// - Parameters:
    ///   - read: reads the database's time.
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

    /// Returns the database's current time.
    ///
    /// - Throws: `Outage` if the last reading is too old and the database is unreachable.
    package func now() async throws -> Timestamp {
        if let time = extrapolated() { return time }
        let begin = uptime()
        let time = try await read()
        let end = uptime()
        // Assumes that the database read its clock in the middle of the round trip, which minimises the error.
        let reading = Reading(time: time + (end - begin) / 2, at: end)
        last.withLock { last in
            if last == nil || end - begin <= Self.longestRoundTrip { last = reading }
        }
        return reading.time
    }

    private func extrapolated() -> Timestamp? {
        let uptime = uptime()
        return last.withLock { last in
            guard let last, uptime - last.at <= Self.maximumAge else { return nil }
            return last.time + (uptime - last.at)
        }
    }
}

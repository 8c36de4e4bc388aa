package import Postgres
package import PushProtocol
import FoundationEssentials
import Messaging
import Synchronization

/// The database's time, shared by all processes of a service, which compare leases and due times of one another.
///
/// Extrapolates a reading of the database's clock with the monotonic clock, and reads again when the last one is old.
/// Does not use the machine's wall clock, which may be wrong or jump.
package final class DatabaseClock: Sendable {
    /// The time after which the database's clock is read again.
    package static let maximumAge = Duration.seconds(15)
    /// How far two clocks drift apart, as a divisor of the time: 100 parts per million.
    private static let driftDivisor = 10_000

    private struct Reading {
        var time: Timestamp
        var at: ContinuousClock.Instant
        /// How far `time` may be wrong: half of the round trip.
        var error: Duration

        func time(at instant: ContinuousClock.Instant) -> Timestamp { time + (instant - at) }

        func error(at instant: ContinuousClock.Instant) -> Duration {
            error + (instant - at) / DatabaseClock.driftDivisor
        }

        /// Whether `newer` shows that the database's clock was set, or is more accurate.
        func isReplaced(by newer: Reading) -> Bool {
            let error = error(at: newer.at)
            let difference = newer.time - time(at: newer.at)
            return newer.error <= error || abs(difference / .seconds(1)) > (error + newer.error) / .seconds(1)
        }
    }

    private let read: @Sendable () async throws -> Timestamp
    private let uptime: @Sendable () -> ContinuousClock.Instant
    /// The most accurate reading, and the time of the last one.
    private let best = Mutex<(reading: Reading, readAt: ContinuousClock.Instant)?>(nil)

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
        let error = (end - begin) / 2
        let reading = Reading(time: time + error, at: end, error: error)
        return best.withLock { best in
            let kept = best.map { $0.reading.isReplaced(by: reading) ? reading : $0.reading } ?? reading
            best = (kept, end)
            return kept.time(at: end)
        }
    }

    private func extrapolated() -> Timestamp? {
        let uptime = uptime()
        return best.withLock { best in
            guard let best, uptime - best.readAt <= Self.maximumAge else { return nil }
            return best.reading.time(at: uptime)
        }
    }
}

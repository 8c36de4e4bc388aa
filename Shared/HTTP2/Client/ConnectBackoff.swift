import NIOCore
import Primitives

/// Limits the rate of new connections: one for each interval on average, fewer after failures.
///
/// APNs treats rapid connecting and disconnecting as a denial-of-service attack (Apple: Sending notification requests
/// to APNs). One connection may be replaced at once, so that a GOAWAY causes no delay; the next one waits for the
/// interval.
struct ConnectBackoff {
    private let interval: TimeAmount
    private let backoff: Backoff
    private var failures = 0
    /// The end of the current backoff.
    private var backoffEnd = NIODeadline.uptimeNanoseconds(0)
    private var lastStart: NIODeadline?
    /// The start before `lastStart`.
    private var earlierStart: NIODeadline?

    init(interval: TimeAmount, backoff: Backoff) {
        self.interval = interval
        self.backoff = backoff
    }

    /// The earliest time to add a connection to working ones.
    var nextGrowth: NIODeadline {
        max(backoffEnd, lastStart.map { $0 + interval } ?? backoffEnd)
    }

    /// The earliest time to open a connection when there is none: at most two for each interval.
    var nextReplacement: NIODeadline {
        max(backoffEnd, earlierStart.map { $0 + interval } ?? backoffEnd)
    }

    mutating func started(now: NIODeadline) {
        earlierStart = lastStart
        lastStart = now
    }

    mutating func succeeded() {
        failures = 0
    }

    /// Doubles the backoff. Half of it is fixed, so that failing peers are not flooded; half is jitter, so that many
    /// senders do not reconnect together. `random` is in 0..<1.
    mutating func failed(now: NIODeadline, random: Double) {
        failures += 1
        backoffEnd = now + TimeAmount(backoff.delay(afterFailures: failures, jitter: .equal, random: random))
    }
}

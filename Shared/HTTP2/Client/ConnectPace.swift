import NIOCore

/// How fast connections may follow each other: at most one in an interval on average, fewer after failures.
///
/// Providers take frequent opening and closing for an attack. One connection may be replaced at once, so that a
/// GOAWAY costs nothing; the next one waits for its turn.
struct ConnectPace {
    private let interval: TimeAmount
    private let backoff: TimeAmount
    private let maximumBackoff: TimeAmount
    private var failures = 0
    /// The end of the current back-off.
    private var backoffEnd = NIODeadline.uptimeNanoseconds(0)
    private var lastStart: NIODeadline?
    /// The start before the last one.
    private var earlierStart: NIODeadline?

    init(interval: TimeAmount, backoff: TimeAmount, maximumBackoff: TimeAmount) {
        self.interval = interval
        self.backoff = backoff
        self.maximumBackoff = maximumBackoff
    }

    /// When a connection may be added to others that work.
    var nextGrowth: NIODeadline {
        max(backoffEnd, lastStart.map { $0 + interval } ?? backoffEnd)
    }

    /// When a connection may be opened if there is none: two in one interval, but never three.
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

    /// Doubles the back-off: half of it certain, so that nobody is hammered, half of it random, so that many
    /// senders do not return together. `random` is in 0..<1.
    mutating func failed(now: NIODeadline, random: Double) {
        failures += 1
        let doubled = Double(backoff.nanoseconds) * Double(1 << min(failures - 1, 30))
        let whole = min(doubled, Double(maximumBackoff.nanoseconds))
        backoffEnd = now + .nanoseconds(Int64(whole / 2 + whole / 2 * random))
    }
}

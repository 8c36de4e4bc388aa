import Primitives

/// Collects spans into batches. Pure: times are given.
///
/// The defaults of size and count are those of OpenTelemetry's batch span processor, with a larger buffer and a shorter
/// delay.
struct SpanBatcher: Sendable {
    struct Limits: Sendable {
        /// The most spans that wait. Further ones are dropped, so that a slow receiver costs bounded memory.
        var buffer = 4096
        /// The most spans of a request.
        var batch = 512
        /// The longest wait of a span for a full batch.
        var delay = Duration.seconds(1)
        /// The attempts of a batch, after which it is dropped.
        var attempts = 8
        var backoff = Backoff(base: .seconds(1), cap: .seconds(30))
        /// The most of a receiver's `Retry-After` that is respected.
        var longestRetryAfter = Duration.seconds(60)
    }

    /// The receiver's answer to a batch.
    enum ExportResult: Hashable, Sendable {
        /// Accepted, except for some spans.
        case accepted(rejected: Int)
        /// Refused in a way that a repetition does not change.
        case refused
        /// Unavailable; `after` is its `Retry-After`.
        case unavailable(after: Duration?)
    }

    /// Numbers of spans, for metrics.
    struct Tally: Hashable, Sendable {
        var exported = 0
        var refused = 0
        var dropped = 0
    }

    enum Step: Sendable {
        case send([SpanRecord])
        /// Nothing is due before this time passes; `nil` while no span waits.
        case wait(Duration?)
    }

    private let limits: Limits
    private var waiting: [SpanRecord] = []
    /// When the oldest waiting span was added.
    private var oldest: Duration?
    /// The batch that is repeated, and when.
    private var repeated: (spans: [SpanRecord], at: Duration)?
    private var failures = 0
    private var tally = Tally()

    init(_ limits: Limits = Limits()) { self.limits = limits }

    /// Adds a span, or drops it if the buffer is full.
    ///
    /// - Parameter now: the time since an arbitrary start.
    mutating func add(_ span: SpanRecord, now: Duration) {
        guard waiting.count + (repeated?.spans.count ?? 0) < limits.buffer else {
            tally.dropped += 1
            return
        }
        waiting.append(span)
        if oldest == nil { oldest = now }
    }

    /// The next step. After `.send`, call ``record(_:of:now:random:)`` before the next call.
    ///
    /// - Parameter isFinal: whether the process ends: partial batches are sent too, and waits are skipped.
    mutating func next(now: Duration, isFinal: Bool = false) -> Step {
        if let repeated {
            guard isFinal || now >= repeated.at else { return .wait(repeated.at - now) }
            self.repeated = nil
            return .send(repeated.spans)
        }
        guard let oldest else { return .wait(nil) }
        let due = oldest + limits.delay
        guard isFinal || waiting.count >= limits.batch || now >= due else { return .wait(due - now) }
        let batch = Array(waiting.prefix(limits.batch))
        waiting.removeFirst(batch.count)
        self.oldest = waiting.isEmpty ? nil : now
        return .send(batch)
    }

    /// Records the answer to a batch. An unavailable receiver gets the same batch again.
    mutating func record(
        _ result: ExportResult, of batch: [SpanRecord], now: Duration, random: Double = .random(in: 0...1)
    ) {
        switch result {
        case .accepted(let rejected):
            failures = 0
            tally.refused += min(max(rejected, 0), batch.count)
            tally.exported += batch.count - min(max(rejected, 0), batch.count)
        case .refused:
            failures = 0
            tally.refused += batch.count
        case .unavailable(let after):
            failures += 1
            guard failures < limits.attempts else {
                failures = 0
                tally.dropped += batch.count
                return
            }
            let wait = limits.backoff.delay(afterFailures: failures, jitter: .equal, random: random)
            repeated = (batch, now + max(wait, min(after ?? .zero, limits.longestRetryAfter)))
        }
    }

    /// Drops all spans; at the end of the process.
    mutating func dropAll() {
        tally.dropped += waiting.count + (repeated?.spans.count ?? 0)
        (waiting, repeated, oldest) = ([], nil, nil)
    }

    /// Returns the numbers since the last call.
    mutating func takeTally() -> Tally {
        defer { tally = Tally() }
        return tally
    }
}

import Messaging
import Metrics
import PushProtocol
import Synchronization

/// What a sender counts, beside what every stage does:
///
/// | name | kind | labels | counts |
/// |---|---|---|---|
/// | `heliograph_push_targets_total` | counter | provider, app, disposition | targets that got an outcome |
/// | `heliograph_lane_open` | gauge | provider, app, environment | 1 while the lane sends, 0 while it pauses |
///
/// Every label is bounded: apps are configured, dispositions are fixed.
final class PushMetrics: Sendable {
    private struct Key: Hashable {
        var app: AppID
        var disposition: Outcome.Answer.Disposition
    }

    private let provider: Provider
    private let counters = Mutex<[Key: Counter]>([:])

    init(provider: Provider) { self.provider = provider }

    func count(_ settled: [OutcomeBatches.Settled]) {
        // One key's outcomes mostly come together.
        var run: (key: Key, count: Int)?
        func count(_ disposition: Outcome.Answer.Disposition, _ outcomes: Int, of push: Delivery<Push>) {
            if let key = run?.key, key.disposition == disposition, key.app == push.message.app {
                run?.count += outcomes
            } else {
                if let run { counter(run.key).increment(by: run.count) }
                run = (Key(app: push.message.app, disposition: disposition), outcomes)
            }
        }
        for place in settled.indices {
            if settled[place].isPlainlyAccepted {
                count(.accepted, settled[place].outcomes.count, of: settled[place].delivery)
            } else {
                for outcome in settled[place].outcomes {
                    count(outcome.answer.disposition, 1, of: settled[place].delivery)
                }
            }
        }
        if let run { counter(run.key).increment(by: run.count) }
    }

    private func counter(_ key: Key) -> Counter {
        counters.withLock { counters in
            if let counter = counters[key] { return counter }
            let counter = Counter(
                label: "heliograph_push_targets_total",
                dimensions: [
                    ("provider", provider.rawValue), ("app", key.app.rawValue),
                    ("disposition", key.disposition.rawValue),
                ])
            counters[key] = counter
            return counter
        }
    }
}

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

    /// - Parameter settled: as ``TargetOutcomes/divided`` divides them.
    func count(_ settled: (accepted: TargetOutcomes, others: TargetOutcomes), of app: AppID) {
        if settled.accepted.count > 0 {
            counter(Key(app: app, disposition: .accepted)).increment(by: settled.accepted.count)
        }
        for outcome in settled.others.outcomes {
            counter(Key(app: app, disposition: outcome.answer.disposition)).increment()
        }
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

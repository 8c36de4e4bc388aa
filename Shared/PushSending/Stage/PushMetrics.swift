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

    func count(_ outcomes: [Outcome], of push: Push) {
        var counts: [Outcome.Answer.Disposition: Int] = [:]
        for outcome in outcomes { counts[outcome.answer.disposition, default: 0] += 1 }
        for (disposition, count) in counts {
            counter(Key(app: push.app, disposition: disposition)).increment(by: count)
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

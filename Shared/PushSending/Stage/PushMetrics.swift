import Messaging
import Metrics
import PushProtocol
import Synchronization

/// What a sender counts, beside what every stage does:
///
/// | name | kind | labels | counts |
/// |---|---|---|---|
/// | `heliograph_push_targets_total` | counter | provider, app, disposition | targets that got an outcome |
/// | `heliograph_push_refusals_total` | counter | provider, app, reason | the same that were refused, by the provider's word or ours |
/// | `heliograph_lane_open` | gauge | provider, app, environment | 1 while the lane sends, 0 while it pauses |
///
/// Every label is bounded: apps are configured, dispositions are fixed, and of reasons, which a provider may invent, there are
/// at most ``mostReasons`` of an app's.
final class PushMetrics: Sendable {
    static let mostReasons = 100

    private struct Key: Hashable {
        var app: AppID
        var disposition: Outcome.Answer.Disposition
    }

    private let provider: Provider
    private let counters = Mutex<[Key: Counter]>([:])
    private let refusals = Mutex<[AppID: [String: Counter]]>([:])

    init(provider: Provider) { self.provider = provider }

    /// - Parameter settled: as ``TargetOutcomes/divided`` divides them.
    func count(_ settled: (accepted: TargetOutcomes, others: TargetOutcomes), of app: AppID) {
        if settled.accepted.count > 0 {
            counter(Key(app: app, disposition: .accepted)).increment(by: settled.accepted.count)
        }
        for outcome in settled.others.outcomes {
            counter(Key(app: app, disposition: outcome.answer.disposition)).increment()
            if let reason = outcome.answer.refusal { refusal(reason, of: app).increment() }
        }
    }

    /// What is said beyond the most there may be counts as `others`, and where in a payload something is, as nothing.
    private func refusal(_ reason: String, of app: AppID) -> Counter {
        refusals.withLock { refusals in
            var word = reason.prefix { $0 != ":" }.description
            if let counter = refusals[app]?[word] { return counter }
            if refusals[app]?.count ?? 0 >= Self.mostReasons { word = "others" }
            if let counter = refusals[app]?[word] { return counter }
            let counter = Counter(
                label: "heliograph_push_refusals_total",
                dimensions: [("provider", provider.rawValue), ("app", app.rawValue), ("reason", word)])
            refusals[app, default: [:]][word] = counter
            return counter
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

extension Outcome.Answer {
    /// Why the target was refused; `nil` where it was not.
    fileprivate var refusal: String? {
        switch self {
        case .unregistered(_, let reason), .rejected(let reason, _), .throttled(let reason), .misconfigured(let reason):
            reason
        case .accepted, .expired, .skipped, .unknown: nil
        }
    }
}

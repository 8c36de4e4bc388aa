import Messaging
import Metrics
import PushProtocol
import Synchronization

/// The metrics of a sender, in addition to those of each stage:
///
/// Bounds the label `reason`, which providers may extend, to ``maxReasonsPerApp`` values.
final class PushMetrics: Sendable {
    static let maxReasonsPerApp = 100

    private struct Key: Hashable {
        var app: AppID
        var disposition: Outcome.Answer.Disposition
    }

    private struct DelayKey: Hashable {
        var app: AppID
        var lane: Lane
    }

    private let provider: Provider
    private let counters = Mutex<[Key: Counter]>([:])
    private let delays = Mutex<[DelayKey: Timer]>([:])
    private let refusals = Mutex<[AppID: [String: Counter]]>([:])

    init(provider: Provider) { self.provider = provider }

    func count(_ settled: (accepted: TargetOutcomes, others: TargetOutcomes), of app: AppID) {
        if settled.accepted.count > 0 {
            counter(Key(app: app, disposition: .accepted)).increment(by: settled.accepted.count)
        }
        for outcome in settled.others.outcomes {
            counter(Key(app: app, disposition: outcome.answer.disposition)).increment()
            if let reason = outcome.answer.refusal { refusal(reason, of: app).increment() }
        }
    }

    /// Records the delay of each push with new acceptances, at the last of them. Ignores pushes without a time of
    /// arrival, such as those of campaigns.
    ///
    /// - Parameter pushes: pushes of one app and lane.
    func recordDelays(_ pushResults: PushResults, of pushes: [Delivery<Push>]) {
        guard let first = pushes.first?.message else { return }
        var timer: Timer?
        var last: (push: Int, at: Timestamp)?
        func record() {
            guard let last, let arrivedAt = pushes[last.push].inbound.arrivedAt else { return }
            let delays = timer ?? delay(DelayKey(app: first.app, lane: first.lane))
            timer = delays
            delays.record(duration: max(.zero, last.at - arrivedAt))
        }
        for index in pushResults.newIndices {
            let outcome = pushResults.finished.outcomes[index]
            guard outcome.answer.disposition == .accepted else { continue }
            let push = pushResults.finished.pushIndices[index]
            if let last, last.push != push { record() }
            last = (push, outcome.at)
        }
        record()
    }

    private func delay(_ key: DelayKey) -> Timer {
        delays.withLock { delays in
            if let timer = delays[key] { return timer }
            let timer = Timer(
                label: "heliograph_event_to_accepted_seconds",
                dimensions: [
                    ("provider", provider.rawValue), ("app", key.app.rawValue), ("lane", key.lane.rawValue),
                ], preferredDisplayUnit: .seconds)
            delays[key] = timer
            return timer
        }
    }

    /// The counter of `reason`, without the part after a colon, which may name a payload member. Counts reasons beyond
    /// the limit as `others`.
    private func refusal(_ reason: String, of app: AppID) -> Counter {
        refusals.withLock { refusals in
            var word = reason.prefix { $0 != ":" }.description
            if let counter = refusals[app]?[word] { return counter }
            if refusals[app]?.count ?? 0 >= Self.maxReasonsPerApp { word = "others" }
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
    /// Why the target was rejected; `nil` if it was not.
    fileprivate var refusal: String? {
        switch self {
        case .unregistered(_, let reason), .rejected(let reason, _), .throttled(let reason), .misconfigured(let reason):
            reason
        case .accepted, .expired, .skipped, .unknown: nil
        }
    }
}

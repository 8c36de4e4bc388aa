import PushProtocol

/// The results of handling the pushes of a route: outcomes of finished targets, and the remaining targets.
struct PushResults: Sendable {
    /// The outcomes, with those of earlier attempts first.
    private(set) var finished: TargetOutcomes
    private var recalled = 0
    /// The number of targets of each push for which no request could be built, by push index.
    private(set) var rejectedLocally: [Int: Int] = [:]
    private var remaining: [Int: RemainingTargets] = [:]

    /// - Parameter capacity: the number of outcomes to reserve memory for.
    init(capacity: Int = 0) { finished = TargetOutcomes(capacity: capacity) }

    /// The indices of outcomes that this attempt added.
    var newIndices: Range<Int> { recalled..<finished.count }

    /// Adds outcomes of an earlier attempt at the push at `pushIndex`. Call it before ``settle(_:of:)``.
    mutating func recall(_ outcomes: [Outcome], of pushIndex: Int) {
        for outcome in outcomes { finished.append(outcome, of: pushIndex) }
        recalled = finished.count
    }

    /// Finishes a target of the push at `pushIndex`.
    mutating func settle(_ outcome: consuming Outcome, of pushIndex: Int) { finished.append(outcome, of: pushIndex) }

    /// Finishes a target of the push at `pushIndex` for which no request could be built.
    mutating func rejectLocally(_ outcome: consuming Outcome, of pushIndex: Int) {
        rejectedLocally[pushIndex, default: 0] += 1
        settle(outcome, of: pushIndex)
    }

    /// Keeps a target of the push at `pushIndex` for a later attempt.
    mutating func addRemaining(
        _ target: Push.Target, of pushIndex: Int, as state: RemainingTargets.TargetState, _ level: RetryLevel,
        _ reason: String
    ) {
        remaining[pushIndex, default: RemainingTargets(level, reason)].add(target, as: state, level, reason)
    }

    /// The remaining targets of the push at `pushIndex`; `nil` if all are finished.
    func remaining(of pushIndex: Int) -> RemainingTargets? { remaining.isEmpty ? nil : remaining[pushIndex] }
}

/// The unfinished targets of a push, and the next step for them.
struct RemainingTargets: Sendable {
    /// Why a target is unfinished.
    enum TargetState: Hashable, Sendable {
        /// The attempt failed.
        case tried
        /// The target was not tried.
        case held
        /// The retry horizon has passed. Retried only if other targets of its push are.
        case exhausted
    }

    /// The next step for all remaining targets of a push.
    enum NextStep: Hashable, Sendable {
        case retry(RetryLevel, reason: String)
        /// Some targets were not tried: no attempt is counted.
        case postpone(RetryLevel, reason: String)
        /// All targets were tried until the horizon: dead-letter the push.
        case giveUp(reason: String)
    }

    private(set) var targets: [Push.Target] = []
    private var states: Set<TargetState> = []
    private var level: RetryLevel
    private var reason: String

    fileprivate init(_ level: RetryLevel, _ reason: String) { (self.level, self.reason) = (level, reason) }

    /// Adds a target. The longest delay of any target holds for all.
    fileprivate mutating func add(_ target: Push.Target, as state: TargetState, _ level: RetryLevel, _ reason: String) {
        targets.append(target)
        states.insert(state)
        if level.delay > self.level.delay { (self.level, self.reason) = (level, reason) }
    }

    var nextStep: NextStep {
        if states.contains(.held) { return .postpone(level, reason: reason) }
        return states.contains(.tried) ? .retry(level, reason: reason) : .giveUp(reason: reason)
    }
}

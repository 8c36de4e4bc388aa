import PushProtocol

/// What one attempt at a push came to: outcomes for the targets that are finished, and the fate of the others.
struct PushSettlement: Sendable {
    private(set) var outcomes: [Outcome]
    /// How many of the outcomes were known before this attempt.
    private let recalled: Int
    private(set) var remaining: [Push.Target] = []
    private var wait: (level: RetryLevel, reason: String)?
    private var isWorthAnotherTry = false
    private var isHeld = false

    /// What becomes of the remaining targets, together.
    enum Fate: Hashable, Sendable {
        case retry(RetryLevel, reason: String)
        /// Some were not even tried: nobody's attempt is counted.
        case postpone(RetryLevel, reason: String)
        /// All of them were tried until the horizon: a person decides.
        case giveUp(reason: String)
    }

    /// Begins with what an earlier attempt is remembered to have settled.
    init(recalled outcomes: [Outcome] = []) {
        self.outcomes = outcomes
        recalled = outcomes.count
    }

    /// What this attempt settled.
    var fresh: ArraySlice<Outcome> { outcomes[recalled...] }

    /// Finishes a target.
    mutating func settle(_ outcome: Outcome) { outcomes.append(outcome) }

    /// Whether no target remains.
    var isOver: Bool { wait == nil }

    /// `nil` when nothing remains. The longest wait that any of the targets needs is everybody's.
    var fate: Fate? {
        guard let (level, reason) = wait else { return nil }
        if isHeld { return .postpone(level, reason: reason) }
        return isWorthAnotherTry ? .retry(level, reason: reason) : .giveUp(reason: reason)
    }

    /// Leaves a target for later.
    mutating func retry(_ target: Push.Target, _ level: RetryLevel, _ reason: String) {
        leave(target, level, reason)
        isWorthAnotherTry = true
    }

    /// Leaves a target that was kept from being tried.
    mutating func hold(_ target: Push.Target, _ level: RetryLevel, _ reason: String) {
        leave(target, level, reason)
        isHeld = true
    }

    /// Leaves a target that has been tried for long enough; it goes along when others are tried again.
    mutating func giveUp(_ target: Push.Target, _ level: RetryLevel, _ reason: String) {
        leave(target, level, reason)
    }

    private mutating func leave(_ target: Push.Target, _ level: RetryLevel, _ reason: String) {
        remaining.append(target)
        if let wait, wait.level.delay >= level.delay { return }
        wait = (level, reason)
    }
}

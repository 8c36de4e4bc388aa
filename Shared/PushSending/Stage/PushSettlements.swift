import PushProtocol

/// What one attempt at the pushes of a lane came to: outcomes for the targets that are finished, which is nearly all of
/// them, and what is left of those pushes that have others.
struct PushSettlements: Sendable {
    /// Those that were known before this attempt come first.
    private(set) var finished: TargetOutcomes
    private var recalled = 0
    /// How many of the rejections of the push at each place are ours: their requests never reached the wire.
    private(set) var refusedHere: [Int: Int] = [:]
    private var rests: [Int: PushRest] = [:]

    /// - Parameter room: for how many outcomes to set some aside.
    init(room: Int = 0) { finished = TargetOutcomes(room: room) }

    /// Which outcomes this attempt added.
    var fresh: Range<Int> { recalled..<finished.count }

    /// Takes over what an earlier attempt is remembered to have settled of the push at `place`; before anything is
    /// settled now.
    mutating func recall(_ outcomes: [Outcome], of place: Int) {
        for outcome in outcomes { finished.append(outcome, of: place) }
        recalled = finished.count
    }

    /// Finishes a target of the push at `place`.
    mutating func settle(_ outcome: consuming Outcome, of place: Int) { finished.append(outcome, of: place) }

    /// Finishes a target of the push at `place` that the provider has not heard of.
    mutating func refuse(_ outcome: consuming Outcome, of place: Int) {
        refusedHere[place, default: 0] += 1
        settle(outcome, of: place)
    }

    /// Leaves a target of the push at `place` for later.
    mutating func leave(
        _ target: Push.Target, of place: Int, as kind: PushRest.Kind, _ level: RetryLevel, _ reason: String
    ) {
        rests[place, default: PushRest(level, reason)].add(target, as: kind, level, reason)
    }

    /// What is left of the push at `place`; `nil` when all of it is finished.
    func rest(of place: Int) -> PushRest? { rests.isEmpty ? nil : rests[place] }
}

/// The targets of a push that an attempt did not finish, and what becomes of them.
struct PushRest: Sendable {
    /// Why a target is left.
    enum Kind: Hashable, Sendable {
        /// It was tried.
        case tried
        /// It was kept from being tried.
        case held
        /// It has been tried for long enough; it goes along when others are tried again.
        case exhausted
    }

    /// What becomes of the targets, together.
    enum Fate: Hashable, Sendable {
        case retry(RetryLevel, reason: String)
        /// Some were not even tried: nobody's attempt is counted.
        case postpone(RetryLevel, reason: String)
        /// All of them were tried until the horizon: a person decides.
        case giveUp(reason: String)
    }

    private(set) var targets: [Push.Target] = []
    private var kinds: Set<Kind> = []
    private var level: RetryLevel
    private var reason: String

    fileprivate init(_ level: RetryLevel, _ reason: String) { (self.level, self.reason) = (level, reason) }

    /// The longest wait that any of the targets needs is everybody's.
    fileprivate mutating func add(_ target: Push.Target, as kind: Kind, _ level: RetryLevel, _ reason: String) {
        targets.append(target)
        kinds.insert(kind)
        if level.delay > self.level.delay { (self.level, self.reason) = (level, reason) }
    }

    var fate: Fate {
        if kinds.contains(.held) { return .postpone(level, reason: reason) }
        return kinds.contains(.tried) ? .retry(level, reason: reason) : .giveUp(reason: reason)
    }
}

import PushProtocol

/// What happened on a lane in one minute.
struct RouteMinute: Hashable, Sendable {
    var minute: Timestamp
    /// People of whom an established registration was refused for the first time in the minutes looked at.
    var registrations: Int
    /// How often an established registration was refused.
    var refused: Int
    /// Targets that the provider took or refused, as the senders told it.
    var answered: Int

    init(minute: Timestamp, registrations: Int, refused: Int, answered: Int) {
        self.minute = minute
        self.registrations = registrations
        self.refused = refused
        self.answered = answered
    }
}

/// A jump in what a lane's provider refuses.
struct Storm: Hashable, Sendable {
    /// How many people's were refused.
    var registrations: Int
    var refused: Int
    var answered: Int
}

/// The guard of one lane at rest, or tripped.
enum GuardState: Hashable, Sendable {
    case atRest
    /// Everything is quarantined, from `since` until `until` unless the storm goes on.
    case tripped(since: Timestamp, until: Timestamp)
}

/// The blast-radius guard (`push-protocols` C.4): when the share of refused tokens jumps, it is not the tokens.
///
/// A *storm* is two neighbouring minutes in which established registrations of at least `minimum` people were refused. Such
/// refusals are also more of the answers than the share `share`, and than `factor` times what is usual on the lane. Two minutes, so that
/// no sixty seconds fall between them. What is usual never makes it blind: more than half is a storm always.
///
/// A share of answers and not of registrations: where each is pushed to ten times a minute, a fifth of them refused is a
/// fifth of the answers. How many registrations the answers are about is more than senders could tell together.
///
/// What is usual is a share too, and is known only from as many answers as `minimum` refusals are the share `share` of
/// (400 unless configured): from a handful, one dead token of two would excuse half a lane.
struct GuardRule: Hashable, Sendable {
    var share: Double
    var minimum: Int
    var factor: Double
    /// How long the guard stays tripped after the last storm.
    var hold: Duration

    init(share: Double = 0.05, minimum: Int = 20, factor: Double = 3, hold: Duration = .seconds(900)) {
        self.share = share
        self.minimum = minimum
        self.factor = factor
        self.hold = hold
    }

    /// The share of refused tokens that is usual on a lane, from 0 to 1; 0 while too little was answered to tell.
    ///
    /// - Parameters:
    ///   - believed: refusals that were believed in the time looked at, but for what an operator released: a storm is
    ///     not usual because it turned out to be true.
    ///   - answered: what was answered in that time.
    func usual(believed: Int, answered: Int) -> Double {
        Double(answered) * share < Double(minimum) ? 0 : Double(believed) / Double(answered)
    }

    /// The worst storm in `minutes`, if there is any.
    ///
    /// - Parameter usual: the share of refused tokens that is usual on the lane, from 0 to 1.
    func storm(in minutes: [RouteMinute], usual: Double) -> Storm? {
        let byMinute = Dictionary(minutes.map { ($0.minute, $0) }) { first, _ in first }
        return minutes.map { last in
            let first = byMinute[last.minute + .seconds(-60)]
            let refused = last.refused + (first?.refused ?? 0)
            // A sender too old to tell what it answered leaves the share at its worst.
            return Storm(
                registrations: last.registrations + (first?.registrations ?? 0), refused: refused,
                answered: max(refused, last.answered + (first?.answered ?? 0)))
        }
        .filter { isStorm($0, usual: usual) }
        .max { $0.refused < $1.refused }
    }

    private func isStorm(_ pair: Storm, usual: Double) -> Bool {
        let threshold = min(max(share, factor * usual), max(share, 0.5))
        return pair.registrations >= minimum && Double(pair.refused) > threshold * Double(pair.answered)
    }

    /// - Parameter isStorm: whether one was found, or a sender has told of one since the guard was last looked at.
    func next(_ state: GuardState, isStorm: Bool, now: Timestamp) -> GuardState {
        switch (state, isStorm) {
        case (.atRest, false): .atRest
        case (.atRest, true): .tripped(since: now, until: now + hold)
        case (.tripped(let since, _), true): .tripped(since: since, until: now + hold)
        case (.tripped(_, let until), false): now < until ? state : .atRest
        }
    }
}

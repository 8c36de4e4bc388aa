package import PushProtocol

struct RouteMinute: Hashable, Sendable {
    var minute: Timestamp
    /// Users whose first rejection of an established registration, among the minutes compared, is in this minute.
    var registrations: Int
    /// Rejections of established registrations.
    var refused: Int
    /// Targets that the provider accepted or rejected, by the senders' counts.
    var answered: Int
}

/// A bad-token spike: a jump in the share of rejections on a route.
package struct ObservedSpike: Hashable, Sendable {
    /// The number of users with a rejected registration.
    package var registrations: Int
    package var refused: Int
    package var answered: Int
}

/// The state of a route's guard.
package enum GuardState: Hashable, Sendable {
    case atRest
    /// All evidence of the route is quarantined from `since`, until `until` unless the spike continues.
    case tripped(since: Timestamp, until: Timestamp)
}

/// Detects bad-token spikes. If many tokens are rejected at once, the route is at fault (ProviderFacts.md §C.4).
///
/// A spike spans two neighbouring minutes, so that it cannot hide at a minute's edge. All of these hold:
/// - Established registrations of at least `minimum` users were rejected.
/// - Rejections exceed the share `share` of the answers.
/// - Rejections exceed `factor` times the route's normal share. More than one half is always a spike.
///
/// Shares refer to answers, because senders cannot count distinct registrations together.
/// The normal share needs `minimum / share` answers (400 by default); with fewer answers it is taken as 0.
package struct GuardRule: Hashable, Sendable {
    var share: Double
    var minimum: Int
    var factor: Double
    /// The time for which the guard stays tripped after the last spike.
    var hold: Duration

    package init(share: Double = 0.05, minimum: Int = 20, factor: Double = 3, hold: Duration = .seconds(900)) {
        self.share = share
        self.minimum = minimum
        self.factor = factor
        self.hold = hold
    }

    /// Returns a route's normal share of rejections, from 0 to 1; 0 if there are too few answers.
    ///
    /// - Parameter believed: Approved rejections in the period, without the ones that an operator released.
    func normalShare(believed: Int, answered: Int) -> Double {
        Double(answered) * share < Double(minimum) ? 0 : Double(believed) / Double(answered)
    }

    /// Returns the largest spike in `minutes`, if any.
    ///
    /// - Parameter normalShare: The route's normal share of rejections, from 0 to 1.
    func spike(in minutes: [RouteMinute], normalShare: Double) -> ObservedSpike? {
        let byMinute = Dictionary(minutes.map { ($0.minute, $0) }) { first, _ in first }
        return minutes.map { last in
            let first = byMinute[last.minute + .seconds(-60)]
            let refused = last.refused + (first?.refused ?? 0)
            // Older senders report no answers. The share is then 1.
            return ObservedSpike(
                registrations: last.registrations + (first?.registrations ?? 0), refused: refused,
                answered: max(refused, last.answered + (first?.answered ?? 0)))
        }
        .filter { isSpike($0, normalShare: normalShare) }
        .max { $0.refused < $1.refused }
    }

    private func isSpike(_ pair: ObservedSpike, normalShare: Double) -> Bool {
        let threshold = min(max(share, factor * normalShare), max(share, 0.5))
        return pair.registrations >= minimum && Double(pair.refused) > threshold * Double(pair.answered)
    }

    /// Returns the guard's state after an evaluation.
    ///
    /// - Parameter isSpike: Whether feedback found a spike, or a sender reported one since the last evaluation.
    func next(_ state: GuardState, isSpike: Bool, now: Timestamp) -> GuardState {
        switch (state, isSpike) {
        case (.atRest, false): .atRest
        case (.atRest, true): .tripped(since: now, until: now + hold)
        case (.tripped(let since, _), true): .tripped(since: since, until: now + hold)
        case (.tripped(_, let until), false): now < until ? state : .atRest
        }
    }
}

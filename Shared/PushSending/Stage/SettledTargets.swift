import FoundationEssentials
import Messaging
import PushProtocol
import Synchronization

/// What this process settled lately, by push: after a reconnect the broker delivers again what was not acknowledged
/// yet, and those targets are answered from here instead of being sent twice.
///
/// It bounds duplicates to the death of the process (`messaging-and-data` §3.2). The oldest make room.
package final class SettledTargets: Sendable {
    /// What is known of a push.
    struct Recollection: Equatable {
        let outcomes: [Outcome]
        /// The places of the targets of which nothing is known.
        fileprivate let others: Set<Int>

        func isMissing(_ target: Int) -> Bool { others.contains(target) }
    }

    private let lifetime: Duration
    private let clock: SenderClock
    private let ring: Mutex<SettledRing>

    /// `capacity` counts targets.
    package init(capacity: Int = 50_000, lifetime: Duration = .seconds(600), clock: SenderClock = .system) {
        ring = Mutex(SettledRing(capacity: capacity))
        self.lifetime = lifetime
        self.clock = clock
    }

    /// What was settled lately of each of `pushes`; `nil` where that is nothing.
    func outcomes(of pushes: [Delivery<Push>]) -> [Recollection?] {
        let now = clock.uptime()
        var recollections = [Recollection?](repeating: nil, count: pushes.count)
        ring.withLock { ring in
            for (place, push) in pushes.enumerated() {
                let outcomes = ring.outcomes(of: push.message.trace.id, now: now)
                // Nearly every push is new.
                if !outcomes.isEmpty { recollections[place] = Self.recollection(of: push.message, outcomes) }
            }
        }
        return recollections
    }

    private static func recollection(of push: Push, _ outcomes: [Outcome]) -> Recollection {
        let known = Dictionary(outcomes.map { (Key($0), $0) }) { first, _ in first }
        return Recollection(
            outcomes: push.targets.compactMap { known[Key($0)] },
            others: Set(push.targets.indices.filter { known[Key(push.targets[$0])] == nil }))
    }

    /// Remembers what was settled of `pushes`.
    func remember(_ settlements: PushSettlements, of pushes: [Delivery<Push>]) {
        let expires = SettledRing.seconds(clock.uptime() + lifetime)
        let (outcomes, places) = (settlements.finished.outcomes, settlements.finished.places)
        ring.withLock { ring in
            for index in settlements.fresh {
                ring.append(outcomes[index], of: pushes[places[index]].message.trace.id, expires: expires)
            }
        }
    }

    private struct Key: Hashable {
        var notification: UUID
        var device: UUID?

        init(_ outcome: Outcome) { (notification, device) = (outcome.notification, outcome.device) }
        init(_ target: Push.Target) { (notification, device) = (target.notification, target.device) }
    }
}

import DequeModule
import FoundationEssentials
import PushProtocol
import Synchronization

/// What this process settled lately, by push: after a reconnect the broker delivers again what was not acknowledged
/// yet, and those targets are answered from here instead of being sent twice.
///
/// It bounds duplicates to the death of the process (`messaging-and-data` §3.2). The oldest pushes make room.
package final class SettledTargets: Sendable {
    private struct Entry {
        var outcomes: [Outcome]
        var expires: Duration
    }

    private struct State {
        var entries: [UUID: Entry] = [:]
        /// The keys of `entries` in the order they came.
        var order: Deque<UUID> = []
        /// Outcomes in `entries`.
        var count = 0
    }

    /// What is known of a push.
    struct Recollection: Equatable {
        let outcomes: [Outcome]
        /// The places of the targets of which nothing is known.
        fileprivate let others: Set<Int>

        func isMissing(_ target: Int) -> Bool { others.contains(target) }
    }

    private let capacity: Int
    private let lifetime: Duration
    private let clock: SenderClock
    private let state = Mutex(State())

    /// `capacity` counts targets.
    package init(capacity: Int = 50_000, lifetime: Duration = .seconds(600), clock: SenderClock = .system) {
        self.capacity = capacity
        self.lifetime = lifetime
        self.clock = clock
    }

    /// The outcomes of those targets of `push` that were settled lately; `nil` where that is none.
    func outcomes(of push: Push) -> Recollection? {
        let entry = state.withLock { $0.entries[push.trace.id] }
        guard let entry, entry.expires > clock.uptime() else { return nil }
        let known = Dictionary(entry.outcomes.map { (Key($0), $0) }) { first, _ in first }
        return Recollection(
            outcomes: push.targets.compactMap { known[Key($0)] },
            others: Set(push.targets.indices.filter { known[Key(push.targets[$0])] == nil }))
    }

    /// Remembers that these targets of the push `id` were settled.
    func remember(_ outcomes: ArraySlice<Outcome>, of id: UUID) {
        guard !outcomes.isEmpty else { return }
        let expires = clock.uptime() + lifetime
        state.withLock { state in
            state.count += outcomes.count
            if var known = state.entries[id] {
                known.outcomes += outcomes
                known.expires = expires
                state.entries[id] = known
            } else {
                state.entries[id] = Entry(outcomes: Array(outcomes), expires: expires)
                state.order.append(id)
            }
            while state.count > capacity, let oldest = state.order.popFirst() {
                state.count -= state.entries.removeValue(forKey: oldest)?.outcomes.count ?? 0
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

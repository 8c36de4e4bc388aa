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
    struct Recollection {
        var outcomes: [Outcome]
        /// The places of the targets of which nothing is known.
        var others: [Int]
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

    /// The outcomes of those targets of `push` that were settled lately, and the other targets.
    func outcomes(of push: Push) -> Recollection {
        let entry = state.withLock { $0.entries[push.trace.id] }
        guard let entry, entry.expires > clock.uptime() else {
            return Recollection(outcomes: [], others: Array(push.targets.indices))
        }
        let known = Dictionary(entry.outcomes.map { (Key($0), $0) }) { first, _ in first }
        return Recollection(
            outcomes: push.targets.compactMap { known[Key($0)] },
            others: push.targets.indices.filter { known[Key(push.targets[$0])] == nil })
    }

    /// Remembers that these targets of the push `id` were settled.
    func remember(_ outcomes: ArraySlice<Outcome>, of id: UUID) {
        guard !outcomes.isEmpty else { return }
        let expires = clock.uptime() + lifetime
        state.withLock { state in
            state.count += outcomes.count
            if state.entries[id] == nil { state.order.append(id) }
            state.entries[id, default: Entry(outcomes: [], expires: expires)].outcomes += outcomes
            state.entries[id]?.expires = expires
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

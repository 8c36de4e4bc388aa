import PushProtocol
import Synchronization
import FoundationEssentials

/// What this process settled lately, by push id: after a reconnect the broker delivers again what was not acknowledged
/// yet, and those targets are answered from here instead of being sent twice.
///
/// It bounds duplicates to the death of the process (`messaging-and-data` §3.2). The oldest entries make room.
package final class SettledTargets: Sendable {
    private struct Entry {
        var outcome: Outcome
        var expires: Duration
    }

    private struct State {
        var entries: [UUID: Entry] = [:]
        /// The keys of `entries` in the order they came, as a ring of `capacity` places.
        var ring: [UUID] = []
        var next = 0
    }

    private let capacity: Int
    private let lifetime: Duration
    private let clock: SenderClock
    private let state = Mutex(State())

    package init(capacity: Int = 100_000, lifetime: Duration = .seconds(600), clock: SenderClock = .system) {
        self.capacity = capacity
        self.lifetime = lifetime
        self.clock = clock
    }

    /// The outcomes of those of `pushIDs` that were settled lately, by push id.
    func outcomes(of pushIDs: [UUID]) -> [UUID: Outcome] {
        let now = clock.uptime()
        return state.withLock { state in
            var found: [UUID: Outcome] = [:]
            for id in pushIDs {
                if let entry = state.entries[id], entry.expires > now { found[id] = entry.outcome }
            }
            return found
        }
    }

    /// Remembers that these pushes were settled.
    func remember(_ settled: [(pushID: UUID, outcome: Outcome)]) {
        let expires = clock.uptime() + lifetime
        state.withLock { state in
            for (id, outcome) in settled {
                if state.entries.updateValue(Entry(outcome: outcome, expires: expires), forKey: id) != nil { continue }
                if state.ring.count < capacity {
                    state.ring.append(id)
                } else {
                    state.entries[state.ring[state.next]] = nil
                    state.ring[state.next] = id
                    state.next = (state.next + 1) % capacity
                }
            }
        }
    }
}

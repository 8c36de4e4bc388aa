import Synchronization

/// What must hold before this process should be given work: named conditions, each with a reason while it does not.
///
/// Safe from any thread. Checks run on the probe's task and must return at once.
package final class Readiness: Sendable {
    /// Whether a condition holds.
    package enum State: Hashable, Sendable {
        case holds
        /// Why not, as a phrase for people; no secrets.
        case waiting(String)
        /// Why not, where that is only told: the process should be given work all the same.
        case degraded(String)

        var allowsWork: Bool {
            switch self {
            case .holds, .degraded: true
            case .waiting: false
            }
        }
    }

    private struct Conditions {
        var checks: [(name: String, check: @Sendable () -> State)] = []
        var isDraining = false
    }

    private let conditions = Mutex(Conditions())

    package init() {}

    /// Adds a condition that is asked at every probe. Names are unique; the last registered of a name counts.
    package func register(_ name: String, _ check: @escaping @Sendable () -> State) {
        conditions.withLock { conditions in
            conditions.checks.removeAll { $0.name == name }
            conditions.checks.append((name, check))
        }
    }

    /// Adds a condition that its owner sets.
    package func condition(_ name: String, waiting reason: String) -> Condition {
        condition(name, initially: .waiting(reason))
    }

    /// Adds a condition that its owner sets, and that never keeps the process from being given work.
    package func condition(_ name: String, degraded reason: String) -> Condition {
        condition(name, initially: .degraded(reason))
    }

    private func condition(_ name: String, initially state: State) -> Condition {
        let condition = Condition(state)
        register(name) { condition.state }
        return condition
    }

    /// From now on the process is not ready, whatever holds: it is shutting down.
    package func drain() { conditions.withLock { $0.isDraining = true } }

    /// The answer to a probe.
    package var report: Report {
        let now = conditions.withLock { $0 }
        return Report(
            isDraining: now.isDraining, conditions: now.checks.map { .init(name: $0.name, state: $0.check()) })
    }

    /// A condition that is set by whoever knows.
    package final class Condition: Sendable {
        private let current: Mutex<State>

        init(_ state: State) { current = Mutex(state) }

        package var state: State { current.withLock { $0 } }
        package func set(_ state: State) { current.withLock { $0 = state } }
    }

    package struct Report: Hashable, Sendable {
        package struct Line: Hashable, Sendable {
            package let name: String
            package let state: State
        }

        package let isDraining: Bool
        /// In the order of registration.
        package let conditions: [Line]

        package var isReady: Bool { !isDraining && conditions.allSatisfy(\.state.allowsWork) }
    }
}

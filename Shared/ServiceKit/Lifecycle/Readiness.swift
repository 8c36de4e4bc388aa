import Synchronization

/// The readiness of the process: named conditions, each with a reason while it does not hold.
///
/// Thread-safe. Checks run on the probe's task and must not block.
package final class Readiness: Sendable {
    package enum State: Hashable, Sendable {
        case holds
        /// Does not hold, with the reason; without secrets. The process is not ready.
        case waiting(String)
        /// Does not hold, with the reason. The process stays ready.
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

    /// Adds a condition that is checked at every probe. Replaces a condition with the same name.
    package func register(_ name: String, _ check: @escaping @Sendable () -> State) {
        conditions.withLock { conditions in
            conditions.checks.removeAll { $0.name == name }
            conditions.checks.append((name, check))
        }
    }

    /// Adds a condition that its owner sets, in the state `state` at first.
    package func condition(_ name: String, _ state: State) -> Condition {
        let condition = Condition(state)
        register(name) { condition.state }
        return condition
    }

    /// Makes the process unready for the shutdown.
    package func drain() { conditions.withLock { $0.isDraining = true } }

    package var report: Report {
        let now = conditions.withLock { $0 }
        return Report(
            isDraining: now.isDraining, conditions: now.checks.map { .init(name: $0.name, state: $0.check()) })
    }

    package final class Condition: Sendable {
        private let current: Mutex<State>

        init(_ state: State) { current = Mutex(state) }

        package var state: State { current.withLock { $0 } }
        package func set(_ state: State) { current.withLock { $0 = state } }
    }

    package struct Report: Hashable, Sendable {
        package struct ConditionState: Hashable, Sendable {
            package let name: String
            package let state: State
        }

        package let isDraining: Bool
        /// In the order of registration.
        package let conditions: [ConditionState]

        package var isReady: Bool { !isDraining && conditions.allSatisfy(\.state.allowsWork) }
    }
}

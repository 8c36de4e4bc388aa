import DecisionLog
import PushProtocol

/// Finds out whether a notification found no device of its user.
struct MatrixDeviceCheck: Sendable {
    /// The maximum number of checks at a time. Further pushkeys count as alive.
    static let maximumChecks = 16
    /// The times between the reads of the decision log. The registry decides about devices within milliseconds.
    private static let pauses: [Duration] = [100, 200, 400, 800].map { .milliseconds($0) }

    private let store: ExplanationStore
    private let running = ConcurrencyLimit(maximumChecks)

    init(store: ExplanationStore) { self.store = store }

    /// Whether the registry has no device of the user for this event. False while it is not known.
    func hasNoDevice(_ event: DomainEvent) async -> Bool {
        await running.run { await check(event) } ?? false
    }

    private func check(_ event: DomainEvent) async -> Bool {
        let question = ExplanationStore.ExplanationQuery(event: event.id, app: event.app, source: event.source)
        for pause in Self.pauses {
            guard (try? await Task.sleep(for: pause)) != nil else { return false }
            guard let found = try? await store.explain(question) else { return false }
            guard let trace = found.first?.traces.first else { continue }
            // Users' settings may prevent a push. Then the log has no outcome of the registry.
            guard trace.decisions.last?.answer.hasPrefix("push") == true else { return false }
            if !trace.outcomes.isEmpty { return trace.outcomes.allSatisfy { $0.reason == "no-device" } }
        }
        return false
    }
}

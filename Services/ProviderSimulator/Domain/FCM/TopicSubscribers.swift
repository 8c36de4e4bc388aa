import Synchronization

/// The topic subscriptions of app instances, by project (ProviderFacts.md §B.9). Safe from any thread.
final class TopicSubscribers: Sendable {
    /// Per app instance (ProviderFacts.md §B.5).
    static let maximumTopics = 2000

    enum Change: Hashable, Sendable {
        case done, unchanged, tooMany
    }

    private struct State {
        var subscribers: [String: Set<String>] = [:]
        /// The topics of each instance that ever subscribed, by project.
        var instances: [String: [String: Set<String>]] = [:]
    }

    private let state = Mutex(State())

    func subscribe(_ token: String, to topic: String, of project: String) -> Change {
        state.withLock { state in
            let topics = state.instances[project]?[token] ?? []
            if topics.contains(topic) { return .unchanged }
            guard topics.count < Self.maximumTopics else { return .tooMany }
            state.subscribers["\(project)/\(topic)", default: []].insert(token)
            state.instances[project, default: [:]][token, default: []].insert(topic)
            return .done
        }
    }

    func unsubscribe(_ token: String, from topic: String, of project: String) -> Change {
        state.withLock { state in
            guard state.subscribers["\(project)/\(topic)"]?.remove(token) != nil else { return .unchanged }
            state.instances[project]?[token]?.remove(topic)
            return .done
        }
    }

    func subscribers(of topic: String, of project: String) -> Set<String> {
        state.withLock { $0.subscribers["\(project)/\(topic)"] ?? [] }
    }

    /// The instances that match `condition`. Only instances that ever subscribed to a topic are known.
    func instances(where condition: FCMCondition, of project: String) -> [String] {
        let instances = state.withLock { $0.instances[project] ?? [:] }
        return instances.filter { condition.holds(for: $0.value) }.map(\.key)
    }
}

import Synchronization

/// Which app instances have subscribed to which topics of a project (push-protocols B.9). Safe from any thread.
final class TopicBook: Sendable {
    /// Of one app instance (B.5).
    static let maximumTopics = 2000

    enum Change: Hashable, Sendable {
        case done, alreadySo, tooMany
    }

    private struct State {
        /// The subscribers by project and topic.
        var subscribers: [String: Set<String>] = [:]
        /// The topics of each instance that has or had any, by project.
        var instances: [String: [String: Set<String>]] = [:]
    }

    private let state = Mutex(State())

    func subscribe(_ token: String, to topic: String, of project: String) -> Change {
        state.withLock { state in
            let topics = state.instances[project]?[token] ?? []
            if topics.contains(topic) { return .alreadySo }
            guard topics.count < Self.maximumTopics else { return .tooMany }
            state.subscribers["\(project)/\(topic)", default: []].insert(token)
            state.instances[project, default: [:]][token, default: []].insert(topic)
            return .done
        }
    }

    func unsubscribe(_ token: String, from topic: String, of project: String) -> Change {
        state.withLock { state in
            guard state.subscribers["\(project)/\(topic)"]?.remove(token) != nil else { return .alreadySo }
            state.instances[project]?[token]?.remove(topic)
            return .done
        }
    }

    func subscribers(of topic: String, of project: String) -> Set<String> {
        state.withLock { $0.subscribers["\(project)/\(topic)"] ?? [] }
    }

    /// The instances for which `condition` is true, among those that have ever subscribed to anything: of others nothing
    /// is known.
    func instances(where condition: FCMCondition, of project: String) -> [String] {
        let instances = state.withLock { $0.instances[project] ?? [:] }
        return instances.filter { condition.holds(for: $0.value) }.map(\.key)
    }
}

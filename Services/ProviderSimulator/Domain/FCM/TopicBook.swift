import Synchronization

/// Which app instances have subscribed to which topics of a project (push-protocols B.9). Safe from any thread.
final class TopicBook: Sendable {
    /// Of one app instance (B.5).
    static let maximumTopics = 2000

    enum Change: Hashable, Sendable {
        case done, alreadySo, tooMany
    }

    private struct State {
        /// By project and topic.
        var subscribers: [String: Set<String>] = [:]
        /// How many topics each instance has, by project and token.
        var counts: [String: Int] = [:]
    }

    private let state = Mutex(State())

    func subscribe(_ token: String, to topic: String, of project: String) -> Change {
        state.withLock { state in
            if state.subscribers["\(project)/\(topic)"]?.contains(token) == true { return .alreadySo }
            guard state.counts["\(project)/\(token)", default: 0] < Self.maximumTopics else { return .tooMany }
            state.subscribers["\(project)/\(topic)", default: []].insert(token)
            state.counts["\(project)/\(token)", default: 0] += 1
            return .done
        }
    }

    func unsubscribe(_ token: String, from topic: String, of project: String) -> Change {
        state.withLock { state in
            guard state.subscribers["\(project)/\(topic)"]?.remove(token) != nil else { return .alreadySo }
            state.counts["\(project)/\(token)", default: 1] -= 1
            return .done
        }
    }

    func subscribers(of topic: String, of project: String) -> Set<String> {
        state.withLock { $0.subscribers["\(project)/\(topic)"] ?? [] }
    }
}

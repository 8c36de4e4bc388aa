import Synchronization

/// The most recently addressed phones, with change notifications for viewers. Safe from any thread.
final class PhoneWall: Sendable {
    /// The maximum number of phones. The least recently changed ones are removed.
    static let maximumPhones = 1000
    /// Removing phones in batches keeps sorting out of most requests.
    fileprivate static let slack = 200

    /// The changes since a change number.
    struct Changes: Sendable {
        /// Increases when the wall is cleared; earlier content is invalid.
        let generation: Int
        /// The number of the last change included.
        let last: Int
        /// The changed phones, in the order of their last change.
        let phones: [WallPhone]
    }

    fileprivate struct State {
        var phones: [Phone.ID: WallPhone] = [:]
        var generation = 0
        /// Numbers changes of phones: a push to a topic is one change for each subscriber.
        var changes = 0
        var watchers: [Int: AsyncStream<Void>.Continuation] = [:]
        var lastWatcher = 0
    }

    private let state = Mutex(State())

    /// Records a request for its phone, or for the subscribers of its topic.
    func record(_ entry: LoggedRequest) {
        guard entry.provider != .oauth else { return }
        if let token = entry.response.target, !token.isEmpty { record(entry, for: [token]) }
        if !entry.response.subscribers.isEmpty { record(entry, for: entry.response.subscribers) }
    }

    private func record(_ entry: LoggedRequest, for tokens: [String]) {
        let watchers = state.withLock { state in
            for token in tokens {
                let id = Phone.ID(provider: entry.provider, token: token)
                state.changes += 1
                state.phones[id, default: WallPhone(id)].record(entry, change: state.changes)
            }
            if state.phones.count > Self.maximumPhones + Self.slack { state.removeLeastRecentlyChanged() }
            return state.watchers.isEmpty ? nil : Array(state.watchers.values)
        }
        for watcher in watchers ?? [] { watcher.yield() }
    }

    func removeAll() {
        let watchers = state.withLock { state in
            state.phones = [:]
            state.generation += 1
            return Array(state.watchers.values)
        }
        for watcher in watchers { watcher.yield() }
    }

    /// The phone of a token; `nil` before its first push.
    func phone(_ id: Phone.ID) -> WallPhone? { state.withLock { $0.phones[id] } }

    var count: Int { state.withLock { min($0.phones.count, Self.maximumPhones) } }

    /// The phones that changed after change number `last`.
    ///
    /// - Parameter limit: the maximum number of phones; the earliest changes are returned.
    func changes(after last: Int, limit: Int) -> Changes {
        let (phones, generation) = state.withLock { state in
            (state.phones.values.filter { $0.change > last }, state.generation)
        }
        let sorted = phones.sorted { $0.change < $1.change }.suffix(Self.maximumPhones).prefix(limit)
        return Changes(generation: generation, last: sorted.last?.change ?? last, phones: Array(sorted))
    }

    /// Yields once at the start, and whenever something changed since the last element.
    func watch() -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let number = state.withLock { state in
            state.lastWatcher += 1
            state.watchers[state.lastWatcher] = continuation
            return state.lastWatcher
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { $0.watchers[number] = nil }
        }
        continuation.yield()
        return stream
    }
}

extension PhoneWall.State {
    fileprivate mutating func removeLeastRecentlyChanged() {
        let kept = phones.values.sorted { $0.change > $1.change }.prefix(PhoneWall.maximumPhones)
        phones = Dictionary(uniqueKeysWithValues: kept.map { ($0.id, $0) })
    }
}

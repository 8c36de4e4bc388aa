import PushProtocol
import Synchronization

/// The phones that got something last, for people to look at, and word of every change. Safe from any thread.
final class PhoneWall: Sendable {
    /// Phones on the wall; with more of them, those that were quiet longest leave.
    static let maximumPhones = 1000
    /// Removing some at a time keeps sorting off the path of most requests.
    fileprivate static let slack = 200

    /// What changed since someone last looked.
    struct Changes: Sendable {
        /// Goes up when everything was forgotten: what was seen before is no more.
        let generation: Int
        /// The number of the last change that is part of it: where to look on from.
        let last: Int
        /// Those that changed, in the order of their last changes.
        let phones: [WallPhone]
    }

    fileprivate struct State {
        var phones: [Phone.ID: WallPhone] = [:]
        var generation = 0
        /// Counts what happened to phones: a push to a topic is a change for each of its subscribers.
        var changes = 0
        var watchers: [Int: AsyncStream<Void>.Continuation] = [:]
        var lastWatcher = 0
    }

    private let state = Mutex(State())

    /// Rings the phone that a request was for, and those that subscribed to its topic.
    func record(_ entry: LoggedRequest) {
        guard entry.party != .oauth else { return }
        if let token = entry.verdict.target, !token.isEmpty { record(entry, for: [token]) }
        if !entry.verdict.subscribers.isEmpty { record(entry, for: entry.verdict.subscribers) }
    }

    private func record(_ entry: LoggedRequest, for tokens: [String]) {
        let watchers = state.withLock { state in
            for token in tokens {
                let id = Phone.ID(party: entry.party, token: token)
                state.changes += 1
                state.phones[id, default: WallPhone(id)].record(entry, change: state.changes)
            }
            if state.phones.count > Self.maximumPhones + Self.slack { state.forgetTheQuiet() }
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

    /// How many phones the wall has.
    var count: Int { state.withLock { min($0.phones.count, Self.maximumPhones) } }

    /// What changed after change number `last`.
    ///
    /// - Parameter limit: at most so many phones, those that changed first.
    func changes(after last: Int, limit: Int) -> Changes {
        let (phones, generation) = state.withLock { state in
            (state.phones.values.filter { $0.change > last }, state.generation)
        }
        let sorted = phones.sorted { $0.change < $1.change }.suffix(Self.maximumPhones).prefix(limit)
        return Changes(generation: generation, last: sorted.last?.change ?? last, phones: Array(sorted))
    }

    /// An element whenever something changed since the last one was taken, and one to begin with.
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
    fileprivate mutating func forgetTheQuiet() {
        let kept = phones.values.sorted { $0.change > $1.change }.prefix(PhoneWall.maximumPhones)
        phones = Dictionary(uniqueKeysWithValues: kept.map { ($0.id, $0) })
    }
}

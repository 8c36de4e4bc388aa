import FoundationEssentials
import Logging
import Metrics
import PushProtocol
import RuleEngine
import RuleLanguage
import ServiceKit
import ServiceLifecycle
import Synchronization

/// Polls the inboxes of all listeners, with one query for up to ``batch`` of them.
///
/// It buffers nothing: a listener gets the next few items when it asks, and asks again once they are written. Runs
/// until graceful shutdown.
final class InboxFeed: Service {
    static let pace = Duration.milliseconds(500)
    /// The time without items after which a listener gets a heartbeat, so that proxies keep the connection open.
    static let heartbeat = Duration.seconds(15)
    /// The maximum number of listeners per query.
    static let batch = 500

    enum Word: Sendable {
        /// The changes to show, possibly none. The listener continues at `until`.
        case news([InboxFeedStore.Entry], until: FeedCursor)
        case nothing
        case end
    }

    private struct Waiting {
        var listener: InboxFeedStore.Listener
        var since: ContinuousClock.Instant
        var continuation: CheckedContinuation<Word, Never>
    }

    private struct State {
        var waiting: [UInt64: Waiting] = [:]
        var last: UInt64 = 0
        var isOver = false
    }

    private let store: InboxFeedStore
    private let currentRules: CurrentRules
    private let now: @Sendable () async throws -> Timestamp
    private let uptime: @Sendable () -> ContinuousClock.Instant
    private let logger: Logger
    private let state = Mutex(State())

    init(
        store: InboxFeedStore, currentRules: CurrentRules, now: @escaping @Sendable () async throws -> Timestamp,
        uptime: @escaping @Sendable () -> ContinuousClock.Instant = { .now }, logger: Logger
    ) {
        self.store = store
        self.currentRules = currentRules
        self.now = now
        self.uptime = uptime
        self.logger = logger
    }

    var listeners: Int { state.withLock { $0.waiting.count } }

    /// A listener for items after `place`; `nil`: for items from now on.
    func listener(_ person: PersonKey, after place: FeedCursor?) async throws -> InboxFeedStore.Listener {
        let now = try await now()
        if let place {
            return InboxFeedStore.Listener(person: person, after: place, since: now - InboxFeedStore.horizon)
        }
        return InboxFeedStore.Listener(
            person: person, after: try await store.startPosition(), since: now - InboxFeedStore.patience)
    }

    /// Waits for the listener's next items, a heartbeat or the end. Returns the end if cancelled.
    func next(for listener: InboxFeedStore.Listener) async -> Word {
        let number = state.withLock { state in
            state.last += 1
            return state.last
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    if state.isOver || Task.isCancelled { return true }
                    state.waiting[number] = Waiting(listener: listener, since: uptime(), continuation: continuation)
                    return false
                }
                if isOver { continuation.resume(returning: .end) }
            }
        } onCancel: {
            resume(number, .end)
        }
    }

    func run() async throws {
        await PeriodicTask(
            every: Self.pace, failureMessage: "Cannot read new inbox items for streams; retrying",
            recoveryMessage: "Reading new inbox items for streams again", logger: logger
        ).run {
            defer { self.sendHeartbeats() }
            try await self.look()
        }
        finish()
    }

    /// Ends all listeners.
    func finish() {
        let waiting = state.withLock { state in
            state.isOver = true
            defer { state.waiting = [:] }
            return state.waiting
        }
        for listener in waiting.values { listener.continuation.resume(returning: .end) }
    }

    /// Polls once for all listeners. A listener whose items cannot be read does not block the others.
    func look() async throws {
        let waiting = state.withLock { $0.waiting.map { ($0.key, $0.value.listener) } }
        tell(waiting.count)
        for part in waiting.chunks(ofAtMost: Self.batch) { try await look(for: part[...]) }
    }

    private func look(for part: ArraySlice<(UInt64, InboxFeedStore.Listener)>) async throws {
        do {
            try await deliverItems(to: Array(part))
        } catch let error where error.isCausedByRows {
            guard part.count > 1 else {
                logger.warning(
                    "Cannot read the inbox items of a stream; ending the stream",
                    metadata: [LogKey.app: "\(part.first?.1.person.app.rawValue ?? "-")", LogKey.error: "\(error)"])
                for (number, _) in part { resume(number, .end) }
                return
            }
            let middle = part.startIndex + part.count / 2
            try await look(for: part[..<middle])
            try await look(for: part[middle...])
        }
    }

    private func deliverItems(to part: [(UInt64, InboxFeedStore.Listener)]) async throws {
        let now = try await now()
        let (news, people) = try await store.news(for: part.map(\.1), now: now)
        for (index, entries) in news {
            let (number, listener) = part[index]
            let person = people[listener.person] ?? Person()
            guard let place = entries.last?.place else { continue }
            let shown = entries.filter { entry in
                switch entry.change {
                case .new(let item): isShown(item, to: person, now: now)
                case .removed: true
                }
            }
            resume(number, .news(shown, until: place))
        }
    }

    private func tell(_ listeners: Int) { Gauge(label: "heliograph_rules_inbox_listeners").record(listeners) }

    /// Sends a heartbeat to listeners that have waited for `patience`.
    func sendHeartbeats(after patience: Duration = InboxFeed.heartbeat) {
        let uptime = uptime()
        let patient = state.withLock { state in
            state.waiting.filter { uptime - $0.value.since >= patience }.map(\.key)
        }
        for number in patient { resume(number, .nothing) }
    }

    private func resume(_ number: UInt64, _ word: Word) {
        state.withLock { $0.waiting.removeValue(forKey: number) }?.continuation.resume(returning: word)
    }

    private func isShown(_ item: InboxItem, to person: Person, now: Timestamp) -> Bool {
        guard let set = currentRules.ruleSets[item.rendered.app] else { return true }
        let input = DecisionInput(
            policy: set.rule(named: item.rendered.rule)?.policy ?? .standard, isUserVisible: true,
            mutes: item.rendered.mutes, thread: item.rendered.content.thread, expiresAt: item.rendered.expiresAt,
            since: item.at)
        return DecisionEngine(defaults: set.defaults, now: now).isShown(input, to: person)
    }
}

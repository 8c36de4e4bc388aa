import Crypto
import Synchronization

/// A bounded set of SHA-256 digests of recently accepted or rejected credentials. Does not keep the credentials.
final class RecentDigests: Sendable {
    private struct State {
        var current: Set<SHA256.Digest> = []
        var previous: Set<SHA256.Digest> = []
        var begun: ContinuousClock.Instant
    }

    private let lifetime: Duration
    private let capacity: Int
    private let uptime: @Sendable () -> ContinuousClock.Instant
    private let state: Mutex<State>

    /// - Parameters:
    ///   - lifetime: Digests are kept for one to two lifetimes, or shorter above the capacity.
    ///   - capacity: At most twice this number of digests is kept.
    init(
        lifetime: Duration, capacity: Int = 50_000,
        uptime: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) {
        self.lifetime = lifetime
        self.capacity = capacity
        self.uptime = uptime
        state = Mutex(State(begun: uptime()))
    }

    static func digest(_ text: String) -> SHA256.Digest { SHA256.hash(data: Array(text.utf8)) }

    func contains(_ digest: SHA256.Digest) -> Bool {
        state.withLock { state in
            rotate(&state)
            return state.current.contains(digest) || state.previous.contains(digest)
        }
    }

    func insert(_ digest: SHA256.Digest) {
        state.withLock { state in
            rotate(&state)
            state.current.insert(digest)
        }
    }

    private func rotate(_ state: inout State) {
        let age = uptime() - state.begun
        guard age >= lifetime || state.current.count >= capacity else { return }
        state.previous = age >= lifetime * 2 ? [] : state.current
        state.current = []
        state.begun = uptime()
    }
}

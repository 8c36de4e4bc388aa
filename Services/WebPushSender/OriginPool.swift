import HTTP2
import Providers
import PushProtocol
import PushSending
import Synchronization

/// A push service as one app uses it: its connections, its tokens and its state.
final class Origin: Sendable {
    /// ``WebPushEndpoint/origin``.
    let name: String
    let client: HTTP2Client
    let gateway: ProviderGateway
    let tokens: CredentialCache
    let state = Mutex(OriginState())

    init(name: String, client: HTTP2Client, gateway: ProviderGateway, tokens: CredentialCache) {
        self.name = name
        self.client = client
        self.gateway = gateway
        self.tokens = tokens
    }
}

/// The push services that an app has connections to. Clients choose push services, so their number has a bound: the
/// longest unused one makes room.
final class OriginPool: Sendable {
    /// The time without a request after which the connections to a push service are closed.
    static let idleTime = Duration.seconds(300)

    typealias Open = @Sendable (WebPushEndpoint) throws(HTTP2Error) -> Origin

    private struct Entry {
        let origin: Origin
        var users: Int
        /// The uptime of the last use.
        var usedAt: Duration
    }

    private struct State {
        var entries: [String: Entry] = [:]
        /// Replaced push services, whose connections are still to be closed.
        var closing: [HTTP2Client] = []
        var isShutDown = false
    }

    private let capacity: Int
    private let clock: SenderClock
    private let open: Open
    private let state = Mutex(State())

    /// - Parameter open: creates the client of a push service. It opens no connection before the first request.
    init(capacity: Int, clock: SenderClock, open: @escaping Open) {
        precondition(capacity > 0)
        self.capacity = capacity
        self.clock = clock
        self.open = open
    }

    /// The number of push services with a client.
    var count: Int { state.withLock { $0.entries.count } }
    /// The number of push services that get no requests now.
    var pausedCount: Int {
        let origins = state.withLock { $0.entries.values.map(\.origin) }
        return origins.count { origin in origin.state.withLock(\.isOpen) }
    }

    /// The push service of `endpoint`, until ``release(_:)``. `nil` if the pool is full and all others are in use, or after
    /// the shutdown.
    func acquire(_ endpoint: WebPushEndpoint) throws(HTTP2Error) -> Origin? {
        let now = clock.uptime()
        let result: Result<Origin?, HTTP2Error> = state.withLock { state in
            guard !state.isShutDown else { return .success(nil) }
            if let entry = state.entries[endpoint.origin] {
                state.entries[endpoint.origin] = Entry(origin: entry.origin, users: entry.users + 1, usedAt: now)
                return .success(entry.origin)
            }
            if state.entries.count >= capacity {
                let idle = state.entries.filter { $0.value.users == 0 }
                guard let oldest = idle.min(by: { $0.value.usedAt < $1.value.usedAt }) else { return .success(nil) }
                state.entries[oldest.key] = nil
                state.closing.append(oldest.value.origin.client)
            }
            do throws(HTTP2Error) {
                let origin = try open(endpoint)
                state.entries[endpoint.origin] = Entry(origin: origin, users: 1, usedAt: now)
                return .success(origin)
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    func release(_ origin: Origin) {
        let now = clock.uptime()
        state.withLock { state in
            state.entries[origin.name]?.users -= 1
            state.entries[origin.name]?.usedAt = now
        }
    }

    /// Replaces the tokens of all push services, and lets halted ones try the new key.
    func renewTokens() {
        let now = clock.uptime()
        for origin in state.withLock({ $0.entries.values.map(\.origin) }) {
            origin.tokens.renew()
            origin.state.withLock { $0.endPause(now: now) }
        }
    }

    /// Closes the connections of replaced push services, and of those without a request for ``idleTime``. A paused one stays,
    /// because its pause is known to its entry only.
    func closeIdle() async {
        let now = clock.uptime()
        let closed = state.withLock { state in
            for (name, entry) in state.entries
            where entry.users == 0 && now - entry.usedAt >= Self.idleTime && !entry.origin.state.withLock(\.isOpen) {
                state.entries[name] = nil
                state.closing.append(entry.origin.client)
            }
            defer { state.closing = [] }
            return state.closing
        }
        for client in closed { await client.shutdown() }
    }

    /// Closes all connections after the requests in flight.
    func shutdown() async {
        let closed = state.withLock { state in
            defer { (state.entries, state.closing, state.isShutDown) = ([:], [], true) }
            return state.closing + state.entries.values.map(\.origin.client)
        }
        await withDiscardingTaskGroup { group in
            for client in closed { group.addTask { await client.shutdown() } }
        }
    }
}

/// The pools of all apps. Apps are added while others are served.
final class OriginPools: Sendable {
    private let pools = Mutex<[OriginPool]>([])

    var all: [OriginPool] { pools.withLock { $0 } }

    func insert(_ pool: OriginPool) { pools.withLock { $0.append(pool) } }
}

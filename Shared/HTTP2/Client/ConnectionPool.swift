import NIOCore

/// Chooses the connection for each request and decides when to open another. Pure: no sockets and no clock.
///
/// Connections are numbered from 1. The pool counts their open streams.
struct ConnectionPool {
    typealias ID = Int

    enum Phase: Hashable {
        /// Can transition to: ready, gone.
        case connecting
        /// Accepts streams up to its limit. Can transition to: draining, gone.
        case ready
        /// Finishes its open streams and accepts no more. Can transition to: gone.
        case draining
    }

    struct Member {
        let id: ID
        var phase = Phase.connecting
        var limit = 0
        var open = 0
        /// Whether a 2xx response arrived on it.
        var isProven = false

        var hasStream: Bool { phase == .ready && open < limit }
    }

    enum Growth: Hashable {
        case none
        case connect(ID)
        /// Call `grow` again at this time.
        case later(NIODeadline)
    }

    private let maximum: Int
    private(set) var members: [Member] = []
    private var lastID = 0
    private var backoff: ConnectBackoff
    /// The connection of the current run of streams, the streams left in the run, and its end.
    private var run: (id: ID, left: Int, until: NIODeadline)?

    init(maximum: Int, backoff: ConnectBackoff) {
        self.maximum = maximum
        self.backoff = backoff
    }

    var ready: Int { members.count { $0.phase == .ready } }
    var draining: Int { members.count { $0.phase == .draining } }
    var openStreams: Int { members.reduce(0) { $0 + $1.open } }
    /// Whether a connection is ready or being made.
    var canServeRequests: Bool { members.contains { $0.phase != .draining } }

    // MARK: Streams

    /// Streams opened on one connection before the least loaded one is chosen again. Requests of one run share a write.
    private static var streamsInRun: Int { 64 }
    /// The longest run. Later requests share no write, and an unresponsive connection must not keep receiving streams.
    private static var longestRun: TimeAmount { .milliseconds(10) }

    /// Takes a stream on the connection of the current run; after the run, on the least loaded connection. Returns nil
    /// when no connection has a free stream.
    mutating func takeStream(now: NIODeadline) -> ID? {
        if let run, run.left > 0, now < run.until,
            let index = members.firstIndex(where: { $0.id == run.id && $0.hasStream })
        {
            members[index].open += 1
            self.run = (run.id, run.left - 1, run.until)
            return run.id
        }
        guard let index = leastLoaded else { return nil }
        members[index].open += 1
        run = (members[index].id, Self.streamsInRun - 1, now + Self.longestRun)
        return members[index].id
    }

    private var leastLoaded: Int? {
        members.indices.lazy.filter { members[$0].hasStream }.min { members[$0].open < members[$1].open }
    }

    mutating func releaseStream(_ id: ID) {
        update(id) { $0.open -= 1 }
    }

    // MARK: Connections

    mutating func becameReady(_ id: ID, limit: Int) {
        update(id) {
            $0.phase = .ready
            $0.limit = limit
        }
    }

    mutating func limitChanged(_ id: ID, to limit: Int) {
        update(id) { $0.limit = limit }
    }

    /// Records a 2xx response on a connection; resets the backoff.
    mutating func markProven(_ id: ID) {
        update(id) { $0.isProven = true }
        backoff.succeeded()
    }

    mutating func drain(_ id: ID) {
        update(id) { if $0.phase == .ready { $0.phase = .draining } }
    }

    /// Removes a connection. One that ends without a 2xx response counts as failed, so that a peer which accepts and
    /// closes connections causes backoff. `random` is in 0..<1.
    mutating func remove(_ id: ID, now: NIODeadline, random: Double) {
        guard let index = members.firstIndex(where: { $0.id == id }) else { return }
        let member = members.remove(at: index)
        if !member.isProven { backoff.failed(now: now, random: random) }
    }

    /// Decides whether to open another connection. Called while requests wait and no stream is free.
    mutating func grow(now: NIODeadline) -> Growth {
        let usable = members.filter { $0.phase != .draining }
        guard usable.count < maximum, !usable.contains(where: { $0.phase == .connecting }) else { return .none }
        guard usable.allSatisfy({ $0.open >= $0.limit }) else { return .none }
        // APNs limits each new connection to one stream until its token is accepted; more connections would not help.
        guard usable.isEmpty || usable.contains(where: \.isProven) else { return .none }
        let due = usable.isEmpty ? backoff.nextReplacement : backoff.nextGrowth
        guard due <= now else { return .later(due) }
        backoff.started(now: now)
        lastID += 1
        members.append(Member(id: lastID))
        return .connect(lastID)
    }

    private mutating func update(_ id: ID, _ change: (inout Member) -> Void) {
        guard let index = members.firstIndex(where: { $0.id == id }) else { return }
        change(&members[index])
    }
}

import NIOCore

/// Which connection a request goes to, and when there is another connection. A value without sockets or clocks.
///
/// Connections are told apart by a number from 1. Streams are counted here so that a choice costs no look around.
struct ConnectionPool {
    typealias ID = Int

    enum Phase: Hashable {
        /// Can transition to: ready, gone.
        case connecting
        /// Takes streams up to its limit. Can transition to: draining, gone.
        case ready
        /// Finishes the streams it has and takes no more. Can transition to: gone.
        case draining
    }

    struct Member {
        let id: ID
        var phase = Phase.connecting
        var limit = 0
        var open = 0
        /// It brought a good answer: the peer accepts what we send on it.
        var isProven = false

        /// Whether it takes one more stream.
        var hasStream: Bool { phase == .ready && open < limit }
    }

    enum Growth: Hashable {
        case none
        case connect(ID)
        /// Ask again then.
        case later(NIODeadline)
    }

    private let maximum: Int
    private(set) var members: [Member] = []
    private var lastID = 0
    private var pace: ConnectPace
    /// Where the last stream was taken, and how many more go there until when, before the choice is made again.
    private var run: (id: ID, left: Int, until: NIODeadline)?

    init(maximum: Int, pace: ConnectPace) {
        self.maximum = maximum
        self.pace = pace
    }

    var ready: Int { members.count { $0.phase == .ready } }
    var draining: Int { members.count { $0.phase == .draining } }
    var openStreams: Int { members.reduce(0) { $0 + $1.open } }
    /// Whether a waiting request has anything to wait for.
    var hasProspects: Bool { members.contains { $0.phase != .draining } }

    // MARK: Streams

    /// Streams that are taken on one connection before the least loaded is looked for again: one write, and answers that
    /// come together, where each would have had its own.
    private static var streamsInRun: Int { 64 }
    /// Who comes later shares no write, and a connection that answers nothing is soon not the least loaded.
    private static var longestRun: TimeAmount { .milliseconds(10) }

    /// Takes a stream on a connection that has one left: where the last one was taken, and after a run of them on the
    /// least loaded.
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

    /// A good answer came: the way to the peer works, so the next failure starts the back-off anew.
    mutating func proved(_ id: ID) {
        update(id) { $0.isProven = true }
        pace.succeeded()
    }

    mutating func drain(_ id: ID) {
        update(id) { if $0.phase == .ready { $0.phase = .draining } }
    }

    /// A connection that ends without ever having proved useful counts as a failed one, or a peer that accepts
    /// connections only to end them would be stormed. `random` is in 0..<1.
    mutating func remove(_ id: ID, now: NIODeadline, random: Double) {
        guard let index = members.firstIndex(where: { $0.id == id }) else { return }
        let member = members.remove(at: index)
        if !member.isProven { pace.failed(now: now, random: random) }
    }

    /// Whether another connection is due while requests wait that no stream was left for.
    mutating func grow(now: NIODeadline) -> Growth {
        let usable = members.filter { $0.phase != .draining }
        guard usable.count < maximum, !usable.contains(where: { $0.phase == .connecting }) else { return .none }
        guard usable.allSatisfy({ $0.open >= $0.limit }) else { return .none }
        // More connections would not help with a peer that holds us to one stream until it trusts us.
        guard usable.isEmpty || usable.contains(where: \.isProven) else { return .none }
        let due = usable.isEmpty ? pace.nextReplacement : pace.nextGrowth
        guard due <= now else { return .later(due) }
        pace.started(now: now)
        lastID += 1
        members.append(Member(id: lastID))
        return .connect(lastID)
    }

    private mutating func update(_ id: ID, _ change: (inout Member) -> Void) {
        guard let index = members.firstIndex(where: { $0.id == id }) else { return }
        change(&members[index])
    }
}

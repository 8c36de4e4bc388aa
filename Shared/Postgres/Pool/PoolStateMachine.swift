internal import DequeModule

/// The pool's state machine: takes events and returns actions. Pure: no clock and no connections.
///
/// A connection is *opening*, then *idle* or *leased*, then removed. After a failed open, one connection at a time is
/// opened, with backoff; after a success, one for each waiting caller. Callers are served in FIFO order.
struct PoolStateMachine: ~Copyable {
    typealias ConnectionID = Int
    typealias WaiterID = Int

    enum Action: Equatable {
        case open(ConnectionID)
        case lease(ConnectionID, to: WaiterID)
        case fail(WaiterID, CheckoutFailure)
        /// Check whether these idle connections are still open, then check them in. They count as leased until then.
        case inspect([ConnectionID])
        case close(ConnectionID)
        /// Call `deadlinePassed` at this time. At most one is pending.
        case wake(at: ContinuousClock.Instant)
        /// Call `retryDue` after the backoff for this number of failures. At most one is pending.
        case retry(afterFailures: Int)
        /// All connections are closed, after `close`.
        case finish
    }

    enum CheckoutFailure: Equatable {
        case timedOut
        case closed
        case cancelled
    }

    private enum ConnectionState {
        case opening, idle, leased
    }

    private enum Phase {
        case running, closing, finished
    }

    private struct Waiter {
        let id: WaiterID
        let deadline: ContinuousClock.Instant
    }

    private let size: Int
    private let checkoutTimeout: Duration
    private var phase = Phase.running
    private var connections: [ConnectionID: ConnectionState] = [:]
    /// Idle connections, used in LIFO order: the last one used is the likeliest to be alive.
    private var idle: [ConnectionID] = []
    private var waiters: Deque<Waiter> = []
    private var connectionCount = 0
    private var isWakeArmed = false
    private var isRetryArmed = false
    /// Failed opens since the last success.
    private(set) var failures = 0

    init(size: Int, checkoutTimeout: Duration) {
        self.size = size
        self.checkoutTimeout = checkoutTimeout
    }

    /// Whether the pool has an open connection, as of the last check.
    var isAvailable: Bool { connections.values.contains { $0 != .opening } }

    /// The connections and callers at this moment.
    var statistics: PoolStatistics {
        PoolStatistics(
            size: size, inUse: connections.values.count { $0 == .leased }, idle: idle.count, waiting: waiters.count)
    }

    private var openingCount: Int { connections.values.count { $0 == .opening } }
}

// MARK: - Callers

extension PoolStateMachine {
    mutating func checkout(_ waiter: WaiterID, now: ContinuousClock.Instant) -> [Action] {
        guard phase == .running else { return [.fail(waiter, .closed)] }
        if let connection = idle.popLast() {
            connections[connection] = .leased
            return [.lease(connection, to: waiter)]
        }
        waiters.append(Waiter(id: waiter, deadline: now + checkoutTimeout))
        return grow() + armWake()
    }

    /// Removes a waiter. Does nothing if it was already served.
    mutating func cancel(_ waiter: WaiterID) -> [Action] {
        guard let index = waiters.firstIndex(where: { $0.id == waiter }) else { return [] }
        waiters.remove(at: index)
        return [.fail(waiter, .cancelled)]
    }

    mutating func checkin(_ connection: ConnectionID, isUsable: Bool) -> [Action] {
        guard isUsable, phase == .running else {
            connections[connection] = nil
            return [.close(connection)] + (phase == .running ? grow() : finishIfEmpty())
        }
        return offer(connection)
    }

    mutating func deadlinePassed(now: ContinuousClock.Instant) -> [Action] {
        isWakeArmed = false
        var actions: [Action] = []
        while let waiter = waiters.first, waiter.deadline <= now {
            waiters.removeFirst()
            actions.append(.fail(waiter.id, .timedOut))
        }
        return actions + armWake()
    }

    private mutating func armWake() -> [Action] {
        guard !isWakeArmed, let first = waiters.first else { return [] }
        isWakeArmed = true
        return [.wake(at: first.deadline)]
    }
}

// MARK: - Connections

extension PoolStateMachine {
    /// Starts the pool; opens the first connection in advance.
    mutating func start() -> [Action] { grow() }

    mutating func opened(_ connection: ConnectionID) -> [Action] {
        failures = 0
        guard phase == .running else {
            connections[connection] = nil
            return [.close(connection)] + finishIfEmpty()
        }
        return offer(connection) + grow()
    }

    mutating func openFailed(_ connection: ConnectionID) -> [Action] {
        connections[connection] = nil
        failures += 1
        guard phase == .running else { return finishIfEmpty() }
        if isRetryArmed { return [] }
        isRetryArmed = true
        return [.retry(afterFailures: failures)]
    }

    mutating func retryDue() -> [Action] {
        isRetryArmed = false
        return grow()
    }

    /// Inspects idle connections, so that the loss of the database is noticed before the next use.
    mutating func sweep() -> [Action] {
        guard phase == .running, !idle.isEmpty else { return [] }
        defer { idle = [] }
        for connection in idle { connections[connection] = .leased }
        return [.inspect(idle)]
    }

    mutating func close() -> [Action] {
        guard phase == .running else { return [] }
        phase = .closing
        let refused = waiters.map { Action.fail($0.id, .closed) }
        let closed = idle.map { Action.close($0) }
        for connection in idle { connections[connection] = nil }
        (waiters, idle) = ([], [])
        return refused + closed + finishIfEmpty()
    }

    /// Leases a connection to the longest waiting caller, or makes it idle.
    private mutating func offer(_ connection: ConnectionID) -> [Action] {
        if let waiter = waiters.popFirst() {
            connections[connection] = .leased
            return [.lease(connection, to: waiter.id)]
        }
        connections[connection] = .idle
        idle.append(connection)
        return []
    }

    private mutating func grow() -> [Action] {
        var actions: [Action] = []
        while phase == .running, connections.count < size, needsConnection {
            connectionCount += 1
            connections[connectionCount] = .opening
            actions.append(.open(connectionCount))
        }
        return actions
    }

    private var needsConnection: Bool {
        if failures > 0, isRetryArmed || openingCount > 0 { return false }
        return connections.isEmpty || openingCount < waiters.count
    }

    private mutating func finishIfEmpty() -> [Action] {
        guard phase == .closing, connections.isEmpty else { return [] }
        phase = .finished
        return [.finish]
    }
}

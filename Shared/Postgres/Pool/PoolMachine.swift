internal import DequeModule

/// Decides what the pool does, without doing any of it: events in, actions out, no clock and no connection.
///
/// A connection is *opening*, then *idle* or *leased*, then gone. While opening fails, one connection at a time is
/// tried, after a back-off; once it succeeds, as many are opened as callers wait for. Callers are served in the order in
/// which they came.
struct PoolMachine: ~Copyable {
    typealias ConnectionID = Int
    typealias WaiterID = Int

    enum Action: Equatable {
        case open(ConnectionID)
        case lease(ConnectionID, to: WaiterID)
        case fail(WaiterID, Refusal)
        /// Look whether these idle connections are still open, then check them in. Until then they are leased.
        case inspect([ConnectionID])
        case close(ConnectionID)
        /// Call `deadlinePassed` at this time. Never asked for twice at once.
        case wake(at: ContinuousClock.Instant)
        /// Call `retryDue` after that many failures' back-off. Never asked for twice at once.
        case retry(afterFailures: Int)
        /// All connections are gone, after `close`.
        case finish
    }

    enum Refusal: Equatable {
        case timedOut
        case closed
        case cancelled
    }

    private enum Slot {
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
    private var slots: [ConnectionID: Slot] = [:]
    /// The last one used is the first one taken: it is the likeliest to be alive.
    private var idle: [ConnectionID] = []
    private var waiters: Deque<Waiter> = []
    private var connectionsMade = 0
    private var isWakeArmed = false
    private var isRetryArmed = false
    /// How many times opening has failed since it last succeeded.
    private(set) var failures = 0

    init(size: Int, checkoutTimeout: Duration) {
        self.size = size
        self.checkoutTimeout = checkoutTimeout
    }

    /// Whether the database was there when last we looked.
    var isAvailable: Bool { slots.values.contains { $0 != .opening } }

    private var openingCount: Int { slots.values.count { $0 == .opening } }
}

// MARK: - Callers

extension PoolMachine {
    mutating func checkout(_ waiter: WaiterID, now: ContinuousClock.Instant) -> [Action] {
        guard phase == .running else { return [.fail(waiter, .closed)] }
        if let connection = idle.popLast() {
            slots[connection] = .leased
            return [.lease(connection, to: waiter)]
        }
        waiters.append(Waiter(id: waiter, deadline: now + checkoutTimeout))
        return grow() + armWake()
    }

    /// The caller no longer waits. Does nothing if it has been served.
    mutating func cancel(_ waiter: WaiterID) -> [Action] {
        guard let index = waiters.firstIndex(where: { $0.id == waiter }) else { return [] }
        waiters.remove(at: index)
        return [.fail(waiter, .cancelled)]
    }

    mutating func checkin(_ connection: ConnectionID, isUsable: Bool) -> [Action] {
        guard isUsable, phase == .running else {
            slots[connection] = nil
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

extension PoolMachine {
    /// The pool has begun to run: one connection is opened before anyone asks for it.
    mutating func start() -> [Action] { grow() }

    mutating func opened(_ connection: ConnectionID) -> [Action] {
        failures = 0
        guard phase == .running else {
            slots[connection] = nil
            return [.close(connection)] + finishIfEmpty()
        }
        return offer(connection) + grow()
    }

    mutating func openFailed(_ connection: ConnectionID) -> [Action] {
        slots[connection] = nil
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

    /// Has idle connections inspected, so that the loss of the database is noticed before somebody needs it.
    mutating func sweep() -> [Action] {
        guard phase == .running, !idle.isEmpty else { return [] }
        defer { idle = [] }
        for connection in idle { slots[connection] = .leased }
        return [.inspect(idle)]
    }

    mutating func close() -> [Action] {
        guard phase == .running else { return [] }
        phase = .closing
        let refused = waiters.map { Action.fail($0.id, .closed) }
        let closed = idle.map { Action.close($0) }
        for connection in idle { slots[connection] = nil }
        (waiters, idle) = ([], [])
        return refused + closed + finishIfEmpty()
    }

    /// Gives an unused connection to whoever has waited longest.
    private mutating func offer(_ connection: ConnectionID) -> [Action] {
        if let waiter = waiters.popFirst() {
            slots[connection] = .leased
            return [.lease(connection, to: waiter.id)]
        }
        slots[connection] = .idle
        idle.append(connection)
        return []
    }

    private mutating func grow() -> [Action] {
        var actions: [Action] = []
        while phase == .running, slots.count < size, isMoreWanted {
            connectionsMade += 1
            slots[connectionsMade] = .opening
            actions.append(.open(connectionsMade))
        }
        return actions
    }

    private var isMoreWanted: Bool {
        if failures > 0, isRetryArmed || openingCount > 0 { return false }
        return slots.isEmpty || openingCount < waiters.count
    }

    private mutating func finishIfEmpty() -> [Action] {
        guard phase == .closing, slots.isEmpty else { return [] }
        phase = .finished
        return [.finish]
    }
}

import TestSupport

@testable import Postgres

/// Simulates the environment of a `PoolStateMachine` and records violations of its invariants.
struct PoolSimulation: ~Copyable {
    private var machine: PoolStateMachine
    private let size: Int
    private var now: ContinuousClock.Instant
    private var opening: [Int] = []
    private var leased: [Int] = []
    private var open: Set<Int> = []
    private var isRetryArmed = false
    private var wakeAt: ContinuousClock.Instant?
    private var callers = 0
    private(set) var waiting: Set<Int> = []
    private(set) var violations: [String] = []
    private var isFinished = false

    init(size: Int, timeout: Duration, start: ContinuousClock.Instant) {
        machine = PoolStateMachine(size: size, checkoutTimeout: timeout)
        self.size = size
        now = start
        apply(machine.start())
    }

    mutating func step(_ random: inout SplitMix) {
        now += .milliseconds(Int.random(in: 0...100, using: &random))
        switch Int.random(in: 0..<9, using: &random) {
        case 0, 1, 2:
            callers += 1
            waiting.insert(callers)
            apply(machine.checkout(callers, now: now))
        case 3: if let caller = waiting.randomElement(using: &random) { apply(machine.cancel(caller)) }
        case 4: if let id = opening.popLast() { settleOpening(id, isReachable: .random(using: &random)) }
        case 5, 6:
            guard let index = leased.indices.randomElement(using: &random) else { return }
            giveBack(leased.remove(at: index), isUsable: Int.random(in: 0..<4, using: &random) > 0)
        case 7: fireTimers()
        default: apply(machine.sweep())
        }
    }

    /// Closes the pool, returns all connections, and checks that it finishes.
    mutating func end() {
        apply(machine.close())
        while let id = opening.popLast() { settleOpening(id, isReachable: true) }
        while let id = leased.popLast() { giveBack(id, isUsable: true) }
        if !isFinished { violations.append("not finished") }
        if !open.isEmpty { violations.append("left open: \(open)") }
    }

    private mutating func settleOpening(_ id: Int, isReachable: Bool) {
        if isReachable {
            open.insert(id)
            apply(machine.opened(id))
        } else {
            apply(machine.openFailed(id))
        }
    }

    private mutating func giveBack(_ id: Int, isUsable: Bool) { apply(machine.checkin(id, isUsable: isUsable)) }

    private mutating func fireTimers() {
        if let at = wakeAt, at <= now {
            wakeAt = nil
            apply(machine.deadlinePassed(now: now))
        }
        if isRetryArmed {
            isRetryArmed = false
            apply(machine.retryDue())
        }
    }

    private mutating func apply(_ actions: [PoolStateMachine.Action]) {
        for action in actions {
            switch action {
            case .open(let id): opening.append(id)
            case .lease(let id, let caller):
                if leased.contains(id) { violations.append("connection \(id) lent twice") }
                answer(caller)
                leased.append(id)
            case .fail(let caller, _): answer(caller)
            case .inspect(let ids): leased += ids
            case .close(let id): if open.remove(id) == nil { violations.append("closed \(id), which is not open") }
            case .wake(let at):
                if wakeAt != nil { violations.append("two wakes armed") }
                wakeAt = at
            case .retry:
                if isRetryArmed { violations.append("two retries armed") }
                isRetryArmed = true
            case .finish: isFinished = true
            }
        }
        if opening.count + open.count > size { violations.append("more connections than \(size)") }
    }

    private mutating func answer(_ caller: Int) {
        if waiting.remove(caller) == nil { violations.append("caller \(caller) answered twice") }
    }
}

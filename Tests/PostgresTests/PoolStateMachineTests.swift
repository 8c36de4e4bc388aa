import Testing
import TestSupport

@testable import Postgres

@Suite struct PoolStateMachineTests {
    private let start = ContinuousClock.now
    private let timeout = Duration.seconds(1)

    private func machine(size: Int = 2) -> PoolStateMachine { PoolStateMachine(size: size, checkoutTimeout: timeout) }

    @Test func `one connection is opened in advance`() {
        var machine = machine()
        #expect(machine.start() == [.open(1)])
        let early = machine.isAvailable
        #expect(machine.opened(1) == [])
        let late = machine.isAvailable
        #expect(!early && late)
        #expect(machine.checkout(1, now: start) == [.lease(1, to: 1)])
    }

    @Test func `connections are opened for waiting callers, up to the pool size`() {
        var machine = machine(size: 2)
        _ = machine.start()
        #expect(machine.checkout(1, now: start) == [.wake(at: start + timeout)])
        #expect(machine.checkout(2, now: start) == [.open(2)])
        #expect(machine.checkout(3, now: start) == [])
        #expect(machine.opened(2) == [.lease(2, to: 1)])
        #expect(machine.opened(1) == [.lease(1, to: 2)])
        #expect(machine.checkin(2, isUsable: true) == [.lease(2, to: 3)])
    }

    @Test func `statistics count connections in use, idle ones and waiting callers`() {
        var machine = machine(size: 2)
        _ = machine.start()
        _ = machine.opened(1)
        let idle = machine.statistics
        #expect(idle == PoolStatistics(size: 2, inUse: 0, idle: 1, waiting: 0))
        for waiter in 1...3 { _ = machine.checkout(waiter, now: start) }
        let busy = machine.statistics
        #expect(busy == PoolStatistics(size: 2, inUse: 1, idle: 0, waiting: 2))
        _ = machine.checkin(1, isUsable: true)
        let served = machine.statistics
        #expect(served == PoolStatistics(size: 2, inUse: 1, idle: 0, waiting: 1))
    }

    @Test func `callers time out in order`() {
        var machine = machine(size: 1)
        _ = machine.start()
        _ = machine.opened(1)
        _ = machine.checkout(1, now: start)
        #expect(machine.checkout(2, now: start) == [.wake(at: start + timeout)])
        #expect(machine.checkout(3, now: start + .milliseconds(300)) == [])
        #expect(
            machine.deadlinePassed(now: start + timeout) == [
                .fail(2, .timedOut), .wake(at: start + timeout + .milliseconds(300)),
            ])
        #expect(machine.deadlinePassed(now: start + timeout * 2) == [.fail(3, .timedOut)])
        #expect(machine.checkin(1, isUsable: true) == [])
    }

    @Test func `a cancelled waiter gets no connection`() {
        var machine = machine(size: 1)
        _ = machine.start()
        _ = machine.opened(1)
        _ = machine.checkout(1, now: start)
        _ = machine.checkout(2, now: start)
        _ = machine.checkout(3, now: start)
        #expect(machine.cancel(2) == [.fail(2, .cancelled)])
        #expect(machine.checkin(1, isUsable: true) == [.lease(1, to: 3)])
        #expect(machine.cancel(3) == [])
    }

    @Test func `a broken connection is closed and replaced on demand`() {
        var machine = machine(size: 2)
        _ = machine.start()
        _ = machine.opened(1)
        _ = machine.checkout(1, now: start)
        #expect(machine.checkin(1, isUsable: false) == [.close(1), .open(2)])
        _ = machine.opened(2)
        _ = machine.checkout(2, now: start)
        _ = machine.checkout(3, now: start)
        _ = machine.opened(3)
        #expect(machine.checkin(3, isUsable: false) == [.close(3)])
    }

    @Test func `an unreachable database is retried with one connection at a time, with backoff`() {
        var machine = machine(size: 3)
        _ = machine.start()
        for waiter in 1...3 { _ = machine.checkout(waiter, now: start) }
        #expect(machine.openFailed(1) == [.retry(afterFailures: 1)])
        #expect(machine.openFailed(2) == [])
        #expect(machine.openFailed(3) == [])
        #expect(machine.checkout(4, now: start) == [])
        #expect(machine.retryDue() == [.open(4)])
        #expect(machine.checkout(5, now: start) == [])
        #expect(machine.openFailed(4) == [.retry(afterFailures: 4)])
        #expect(machine.retryDue() == [.open(5)])
        #expect(machine.opened(5) == [.lease(5, to: 1), .open(6), .open(7)])
    }

    @Test func `the database is unavailable once its last connection is closed`() {
        var machine = machine()
        _ = machine.start()
        _ = machine.opened(1)
        #expect(machine.sweep() == [.inspect([1])])
        let before = machine.isAvailable
        #expect(machine.checkin(1, isUsable: false) == [.close(1), .open(2)])
        let after = machine.isAvailable
        #expect(before && !after)
    }

    @Test func `a caller during an inspection is served after it`() {
        var machine = machine(size: 1)
        _ = machine.start()
        _ = machine.opened(1)
        _ = machine.sweep()
        #expect(machine.checkout(1, now: start) == [.wake(at: start + timeout)])
        #expect(machine.checkin(1, isUsable: true) == [.lease(1, to: 1)])
    }

    @Test func `closing refuses callers at once and waits for leased connections`() {
        var machine = machine(size: 2)
        _ = machine.start()
        _ = machine.opened(1)
        _ = machine.checkout(1, now: start)
        _ = machine.checkout(2, now: start)
        #expect(machine.close() == [.fail(2, .closed)])
        #expect(machine.close() == [])
        #expect(machine.checkout(3, now: start) == [.fail(3, .closed)])
        #expect(machine.opened(2) == [.close(2)])
        #expect(machine.checkin(1, isUsable: true) == [.close(1), .finish])
    }

    @Test func `closing an idle pool finishes at once`() {
        var machine = machine()
        _ = machine.start()
        _ = machine.opened(1)
        #expect(machine.close() == [.close(1), .finish])
    }

    @Test func `closing while the database is unreachable finishes without a retry`() {
        var machine = machine()
        _ = machine.start()
        #expect(machine.close() == [])
        #expect(machine.openFailed(1) == [.finish])
    }

    /// Random events: at most `size` connections, one caller for each lease, and one result for each caller.
    @Test(arguments: 1...20) func `random events keep the pool's invariants`(seed: Int) {
        var random = SplitMix(seed: UInt64(seed))
        var world = PoolSimulation(size: 3, timeout: timeout, start: start)
        for _ in 0..<2_000 { world.step(&random) }
        world.end()
        #expect(world.violations == [])
        #expect(world.waiting.isEmpty)
    }
}

import NIOCore
import Primitives
import Testing

@testable import HTTP2

/// The pool's decisions, without sockets and without a clock.
struct PoolTests {
    private let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)

    private func pool(maximum: Int = 3) -> ConnectionPool {
        ConnectionPool(
            maximum: maximum,
            backoff: ConnectBackoff(
                interval: .seconds(1), backoff: Backoff(base: .milliseconds(200), cap: .seconds(5))))
    }

    /// Returns a pool of two connections with a stream on each; a run on the second has started.
    private func poolOfTwo() -> ConnectionPool {
        var pool = pool()
        for id in 1...2 {
            #expect(pool.grow(now: at(Int64(id) * 2000)) == .connect(id))
            pool.becameReady(id, limit: id == 1 ? 1 : 1000)
            pool.markProven(id)
            #expect(pool.takeStream() == id)
        }
        pool.limitChanged(1, to: 1000)
        return pool
    }

    private func at(_ milliseconds: Int64) -> NIODeadline { start + .milliseconds(milliseconds) }

    @Test func `the first request opens a connection and the second waits for it`() {
        var pool = pool()
        #expect(pool.grow(now: at(0)) == .connect(1))
        #expect(pool.grow(now: at(5000)) == .none)
        #expect(pool.takeStream() == nil)
        pool.becameReady(1, limit: 1)
        #expect(pool.takeStream() == 1)
        #expect(pool.takeStream() == nil)
    }

    @Test func `runs of streams go to the least loaded connection`() {
        var pool = poolOfTwo()
        #expect((1...63).allSatisfy { _ in pool.takeStream() == 2 })
        #expect((1...64).allSatisfy { _ in pool.takeStream() == 1 })
        #expect(pool.takeStream() == 2)
        pool.drain(2)
        #expect(pool.takeStream() == 1)
    }

    @Test func `a run ends after a moment, so an unresponsive connection gets no more streams`() {
        var pool = poolOfTwo()
        pool.releaseStream(1)
        #expect(pool.takeStream(now: start + .milliseconds(9)) == 2)
        #expect(pool.takeStream(now: start + .milliseconds(10)) == 1)
    }

    @Test func `a full connection ends its run, and the least loaded one is next`() {
        var pool = pool()
        for id in 1...2 {
            #expect(pool.grow(now: at(Int64(id) * 2000)) == .connect(id))
            pool.becameReady(id, limit: 2)
            pool.markProven(id)
            while pool.takeStream() == id, pool.members.last?.open != 2 {}
        }
        #expect(pool.takeStream() == nil)
        pool.releaseStream(1)
        pool.releaseStream(1)
        pool.releaseStream(2)
        #expect(
            [pool.takeStream(), pool.takeStream(), pool.takeStream(), pool.takeStream()].compactMap { $0 } == [2, 1, 1])
    }

    @Test func `a lowered limit gives no stream until enough have ended`() {
        var pool = pool()
        _ = pool.grow(now: at(0))
        pool.becameReady(1, limit: 1000)
        for _ in 1...10 { #expect(pool.takeStream() == 1) }
        pool.limitChanged(1, to: 1)
        for _ in 1...9 {
            pool.releaseStream(1)
            #expect(pool.takeStream() == nil)
        }
        pool.releaseStream(1)
        #expect(pool.takeStream() == 1)
        #expect(pool.takeStream() == nil)
    }

    @Test func `the pool grows by one connection a second, only when all are full and proven, up to its maximum`() {
        var pool = pool()
        _ = pool.grow(now: at(0))
        pool.becameReady(1, limit: 1)
        #expect(pool.grow(now: at(2000)) == .none)
        _ = pool.takeStream()
        #expect(pool.grow(now: at(2000)) == .none)
        pool.markProven(1)
        #expect(pool.grow(now: at(900)) == .later(at(1000)))
        #expect(pool.grow(now: at(1000)) == .connect(2))
        #expect(pool.grow(now: at(9000)) == .none)
        pool.becameReady(2, limit: 1)
        pool.markProven(2)
        _ = pool.takeStream()
        #expect(pool.grow(now: at(1500)) == .later(at(2000)))
        #expect(pool.grow(now: at(2000)) == .connect(3))
        pool.becameReady(3, limit: 1)
        pool.markProven(3)
        _ = pool.takeStream()
        #expect(pool.grow(now: at(9000)) == .none)
    }

    @Test func `a draining connection accepts no streams, does not count and is replaced at once`() {
        var pool = pool(maximum: 1)
        _ = pool.grow(now: at(0))
        pool.becameReady(1, limit: 10)
        pool.markProven(1)
        _ = pool.takeStream()
        pool.drain(1)
        #expect(pool.takeStream() == nil)
        #expect(pool.grow(now: at(10)) == .connect(2))
        pool.becameReady(2, limit: 10)
        pool.markProven(2)
        pool.drain(2)
        #expect(pool.grow(now: at(20)) == .later(at(1000)))
        #expect(pool.grow(now: at(1000)) == .connect(3))
        #expect(pool.grow(now: at(1001)) == .none)
    }

    @Test func `failures cause backoff, half fixed and half jitter, and a success resets it`() {
        var pool = pool()
        var now = at(0)
        for (failure, wait) in [200, 400, 800, 1600, 3200, 5000, 5000].enumerated() {
            guard case .connect(let id) = pool.grow(now: now) else { Issue.record("no connection \(failure)"); return }
            pool.remove(id, now: now, random: 0)
            #expect(
                pool.grow(now: now + .milliseconds(Int64(wait) / 2 - 1)) == .later(now + .milliseconds(Int64(wait) / 2))
                    || wait <= 1600)
            now = now + .seconds(10)
        }
        guard case .connect(let id) = pool.grow(now: now) else { Issue.record("no connection"); return }
        pool.becameReady(id, limit: 1)
        pool.markProven(id)
        pool.remove(id, now: now, random: 0.99)
        #expect(pool.grow(now: now) == .connect(id + 1))
    }

    @Test func `jitter spreads reconnects`() {
        var early = ConnectBackoff(interval: .seconds(1), backoff: Backoff(base: .seconds(2), cap: .seconds(5)))
        var late = early
        early.failed(now: start, random: 0)
        late.failed(now: start, random: 1)
        #expect(early.nextReplacement == at(1000))
        #expect(late.nextReplacement == at(2000))
    }

    @Test func `a connection that closes without a 2xx response counts as failed`() {
        var pool = pool()
        _ = pool.grow(now: at(0))
        pool.becameReady(1, limit: 100)
        pool.remove(1, now: at(5000), random: 0)
        #expect(pool.grow(now: at(5000)) == .later(at(5100)))
    }
}

extension ConnectionPool {
    /// Takes a stream at a fixed time.
    fileprivate mutating func takeStream() -> ID? { takeStream(now: .uptimeNanoseconds(1_000_000_000_000)) }
}

import Testing
import TestSupport

@testable import HTTPAuth

@Suite struct TokenBucketsTests {
    private let start = ContinuousClock.now

    @Test func `a bucket allows a minute's requests at once, then one at a time`() {
        var limit = TokenBuckets<String>(6, per: .seconds(60), now: start)
        for _ in 0..<6 { #expect(limit.take("a", now: start) == nil) }
        #expect(limit.take("a", now: start) == .seconds(10))
        // A rejected request takes no token.
        #expect(limit.take("a", now: start + .seconds(4)) == .seconds(6))
        #expect(limit.take("a", now: start + .seconds(10)) == nil)
        #expect(limit.take("a", now: start + .seconds(10)) == .seconds(10))
        #expect(limit.take("b", now: start) == nil)
    }

    @Test func `over any time a caller gets at most one bucket above its rate`() {
        var random = SplitMix(seed: 3)
        for perMinute in [1, 7, 120] {
            var limit = TokenBuckets<Int>(perMinute, per: .seconds(60), now: start)
            var (now, taken) = (start, 0)
            for _ in 0..<5000 {
                now += .milliseconds(Int.random(in: 0...1500, using: &random))
                if limit.take(1, now: now) == nil { taken += 1 }
                let most = Double(perMinute) * (1 + (now - start) / .seconds(60)) + 1e-6
                #expect(Double(taken) <= most)
            }
            // A caller at the limit gets at least 90 % of its rate.
            #expect(Double(taken) >= 0.9 * min(5000, Double(perMinute) * ((now - start) / .seconds(60))))
        }
    }

    @Test func `at most twice the capacity of callers is stored`() {
        var limit = TokenBuckets<Int>(60, per: .seconds(60), capacity: 100, now: start)
        for caller in 0..<10_000 {
            #expect(limit.take(caller, now: start) == nil)
            #expect(limit.count <= 200)
        }
        // The latest callers are still stored.
        for _ in 0..<59 { _ = limit.take(9_999, now: start) }
        #expect(limit.take(9_999, now: start) != nil)
    }

    @Test func `callers with full buckets are dropped without a change of their limits`() {
        var limit = TokenBuckets<Int>(2, per: .seconds(60), now: start)
        for caller in 0..<50 { _ = limit.take(caller, now: start) }
        #expect(limit.take(0, now: start + .seconds(59)) == nil)
        _ = limit.take(100, now: start + .seconds(61))
        #expect(limit.take(0, now: start + .seconds(61)) == nil)
        #expect(limit.take(0, now: start + .seconds(61)) != nil)
        _ = limit.take(100, now: start + .seconds(300))
        #expect(limit.count == 1)
    }

    @Test func `a charge beyond the bucket delays the next token until it is refilled`() {
        let start = ContinuousClock.Instant.now
        var buckets = TokenBuckets<String>(60, per: .seconds(60), now: start)
        buckets.charge(90, to: "a", now: start)
        #expect(buckets.wait("a", now: start) == .seconds(31))
        #expect(buckets.wait("a", now: start + .seconds(31)) == nil)
        #expect(buckets.wait("b", now: start) == nil)
    }
}

import PushProtocol
import Testing

@testable import PushSending

@Suite struct TokenBucketTests {
    /// All grants, to check every minute.
    private struct Ledger {
        private(set) var grants: [(at: Duration, count: Int)] = []

        mutating func add(_ count: Int, at moment: Duration) { grants.append((moment, count)) }

        /// The most messages in any minute. Grants are in order of time.
        var busiestMinute: Int {
            var first = 0
            var sum = 0
            var most = 0
            for grant in grants {
                sum += grant.count
                while grants[first].at <= grant.at - .seconds(60) {
                    sum -= grants[first].count
                    first += 1
                }
                most = max(most, sum)
            }
            return most
        }

        func sum(in range: Range<Duration>) -> Int {
            grants.reduce(0) { range.contains($1.at) ? $0 + $1.count : $0 }
        }
    }

    /// Takes all available messages for `duration`, in steps.
    private func drain(
        _ buckets: inout [TokenBucket], into ledger: inout Ledger, from start: Duration, for duration: Duration,
        step: Duration = .milliseconds(100)
    ) {
        var now = start
        while now < start + duration {
            for index in buckets.indices {
                while case .granted(let count) = buckets[index].take(500, .interactive, now: now) {
                    ledger.add(count, at: now)
                }
            }
            now += step
        }
    }

    @Test(arguments: [1_000, 3_840, 600_000]) func `no minute exceeds the quota, and a busy one nearly uses it up`(
        quota: Int
    ) {
        for processes in [1, 3, 10] {
            var buckets = (0..<processes).map { _ in TokenBucket(perMinute: quota, now: .zero) }
            for index in buckets.indices { buckets[index].share(among: processes, now: .zero) }
            var ledger = Ledger()
            drain(&buckets, into: &ledger, from: .zero, for: .seconds(300))
            #expect(ledger.busiestMinute <= quota)
            let busy = ledger.sum(in: .seconds(120) ..< .seconds(180))
            #expect(Double(busy) >= Double(quota) * 0.9, "\(processes) processes sent \(busy) of \(quota)")
        }
    }

    @Test func `the quota holds when processes count each other late`() {
        let quota = 600_000
        let lag = Duration.seconds(5)
        var buckets = [TokenBucket(perMinute: quota, now: .zero)]
        var ledger = Ledger()
        var now = Duration.seconds(0)
        drain(&buckets, into: &ledger, from: now, for: .seconds(120))
        now += .seconds(120)
        for count in [2, 3, 4, 3, 1, 2] {
            // A new process counts all; the others learn of it later.
            if count > buckets.count {
                var new = TokenBucket(perMinute: quota, now: now)
                new.share(among: count, now: now)
                buckets.append(new)
            }
            buckets = Array(buckets.prefix(count))
            drain(&buckets, into: &ledger, from: now, for: lag)
            now += lag
            for index in buckets.indices { buckets[index].share(among: count, now: now) }
            drain(&buckets, into: &ledger, from: now, for: .seconds(90))
            now += .seconds(90)
        }
        #expect(ledger.busiestMinute <= quota)
    }

    @Test func `an idle minute accumulates at most one second's worth`() {
        var bucket = TokenBucket(perMinute: 6400, now: .zero)
        var granted = 0
        while case .granted(let count) = bucket.take(50, .interactive, now: .seconds(3600)) { granted += count }
        #expect(granted == 100)
    }

    @Test func `the rate ramps up from a twentieth in a minute`() {
        let bucket = TokenBucket(perMinute: 6400, now: .seconds(10))
        #expect(bucket.rate(now: .seconds(10)) == 5)
        #expect(bucket.rate(now: .seconds(40)) == 50)
        #expect(bucket.rate(now: .seconds(70)) == 100)
        #expect(bucket.rate(now: .seconds(700)) == 100)
    }

    @Test func `given an exhausted quota, then nothing is sent during the pause and the rate ramps up again`() {
        var bucket = TokenBucket(perMinute: 6400, now: .zero)
        bucket.pauseSending(for: .seconds(120), now: .seconds(100))
        let first = bucket.take(1, .interactive, now: .seconds(160))
        #expect(first == .wait(.seconds(60)))
        // A shorter pause does not shorten it.
        bucket.pauseSending(for: .seconds(10), now: .seconds(160))
        let second = bucket.take(1, .interactive, now: .seconds(200))
        #expect(second == .wait(.seconds(20)))
        #expect(bucket.rate(now: .seconds(219)) == 0)
        #expect(bucket.rate(now: .seconds(220)) == 5)
        let third = bucket.take(10, .interactive, now: .seconds(221))
        #expect(third == .granted(5))
        #expect(bucket.rate(now: .seconds(280)) == 100)
    }

    @Test func `bulk messages leave a reserve for interactive ones`() {
        var bucket = TokenBucket(perMinute: 6400, now: .zero)
        let first = bucket.take(500, .bulk, now: .seconds(100))
        #expect(first == .granted(75))
        guard case .wait = bucket.take(500, .bulk, now: .seconds(100)) else {
            Issue.record("bulk used the reserve")
            return
        }
        let second = bucket.take(500, .interactive, now: .seconds(100))
        #expect(second == .granted(25))
    }

    @Test(arguments: [Lane.interactive, .bulk]) func `after the returned wait a message is granted`(lane: Lane) {
        for quota in [60, 1_000, 600_000] {
            var bucket = TokenBucket(perMinute: quota, now: .zero)
            var now = Duration.seconds(100)
            for wanted in [1, 7, 500, 1, 500] {
                while case .granted = bucket.take(500, lane, now: now) {}
                guard case .wait(let pause) = bucket.take(wanted, lane, now: now) else {
                    Issue.record("something is left")
                    return
                }
                now += pause
                guard case .granted = bucket.take(wanted, lane, now: now) else {
                    Issue.record("\(quota): nothing after \(pause)")
                    return
                }
            }
        }
    }

    @Test func `the share depends on the number of processes`() {
        var bucket = TokenBucket(perMinute: 6400, now: .zero)
        bucket.share(among: 4, now: .seconds(100))
        #expect(bucket.rate(now: .seconds(100)) == 25)
        let grant = bucket.take(500, .interactive, now: .seconds(100))
        #expect(grant == .granted(25))
        bucket.share(among: 1, now: .seconds(100))
        #expect(bucket.rate(now: .seconds(100)) == 100)
    }

    @Test func `a count of zero is ignored, and a pause restarts the ramp`() {
        var bucket = TokenBucket(perMinute: 6400, now: .zero)
        bucket.share(among: 4, now: .seconds(100))
        bucket.share(among: 0, now: .seconds(105))
        #expect(bucket.rate(now: .seconds(200)) == 25)
        bucket.restartRamp(now: .seconds(200))
        #expect(bucket.rate(now: .seconds(200)) == 1.25)
        let grant = bucket.take(500, .interactive, now: .seconds(200))
        #expect(grant == .granted(1))
        #expect(bucket.rate(now: .seconds(260)) == 25)
        // A longer pause is not shortened.
        bucket.pauseSending(for: .seconds(100), now: .seconds(260))
        bucket.restartRamp(now: .seconds(300))
        #expect(bucket.rate(now: .seconds(359)) == 0 && bucket.rate(now: .seconds(360)) == 1.25)
    }

    /// A pause shows as fewer consumers, and its end is noticed with the next count.
    @Test(arguments: [(10, 90), (9, 30), (9, 300), (5, 40), (40, 300)])
    func `the quota holds when paused senders resume together`(_ pausing: Int, _ seconds: Int) {
        let (quota, interval) = (600_000, 5)
        let all = max(pausing, 10)
        var buckets = (0..<all).map { _ in TokenBucket(perMinute: quota, now: .zero) }
        var ledger = Ledger()
        // A count every five seconds, which applies until the next one.
        func pass(_ range: Range<Int>, sending: Int, seen: (Int) -> Int) {
            for second in stride(from: range.lowerBound, to: range.upperBound, by: interval) {
                for index in buckets.indices { buckets[index].share(among: seen(second), now: .seconds(second)) }
                var senders = Array(buckets.prefix(sending))
                drain(&senders, into: &ledger, from: .seconds(second), for: .seconds(interval))
                buckets.replaceSubrange(..<sending, with: senders)
            }
        }
        let (begin, end) = (120, 120 + seconds)
        pass(0..<begin, sending: all) { _ in all }
        pass(begin..<end, sending: all - pausing) { _ in all - pausing }
        for index in (all - pausing)..<all { buckets[index].restartRamp(now: .seconds(end)) }
        pass(end..<end + 120, sending: all) { $0 == end ? all - pausing : all }
        #expect(ledger.busiestMinute <= quota, "\(ledger.busiestMinute)")
        #expect(ledger.sum(in: .seconds(end + 60) ..< .seconds(end + 120)) > quota * 9 / 10)
    }
}

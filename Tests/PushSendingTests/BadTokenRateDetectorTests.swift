import PushProtocol
import PushSending
import Testing

@Suite struct BadTokenRateDetectorTests {
    private var detector = BadTokenRateDetector()

    private var users: Int64 = 0

    /// The owners of `count` suspect tokens, all of new users.
    private mutating func suspected(_ count: Int) -> [UserHash?] {
        (0..<count).map { _ in
            users += 1
            return UserHash(rawValue: users)
        }
    }

    private mutating func record(
        _ answers: Int, _ suspects: [UserHash?], at seconds: Int, probe: Bool = false
    ) -> Bool {
        detector.record(answers: answers, suspects: suspects, isProbe: probe, now: .seconds(seconds)) != nil
    }

    private mutating func recordSuspects(_ answers: Int, of users: Int, at seconds: Int, probe: Bool = false) -> Bool {
        let suspects = suspected(users)
        return record(answers, suspects, at: seconds, probe: probe)
    }

    @Test mutating func `S2: given one user with many invented tokens, then they count as one`() {
        for second in 0..<10 {
            #expect(!record(25, Array(repeating: UserHash(rawValue: 1_000), count: 25), at: second))
        }
        #expect(!recordSuspects(19, of: 18, at: 10))
        #expect(recordSuspects(1, of: 1, at: 11))
    }

    @Test mutating func `S2: given bad tokens of new registrations, then there is no spike`() {
        #expect(!record(500, Array(repeating: nil, count: 500), at: 0))
        #expect(!recordSuspects(20, of: 20, at: 1))
        #expect(recordSuspects(20, of: 20, at: 2))
    }

    @Test mutating func `S2: given a probe with a bad token of a new registration, then the spike lasts`() {
        #expect(recordSuspects(30, of: 30, at: 0))
        #expect(record(1, [nil], at: 30, probe: true))
        #expect(detector.isSpike)
        #expect(!record(1, [], at: 60, probe: true))
        #expect(!detector.isSpike)
    }

    @Test mutating func `B08: given 30 bad tokens of 100 within a minute, then there is a spike`() {
        for second in 0..<10 { #expect(!record(7, [], at: second)) }
        #expect(!recordSuspects(19, of: 19, at: 10))
        #expect(recordSuspects(11, of: 11, at: 20))
    }

    @Test mutating func `given few bad tokens, then there is no spike`() {
        #expect(!recordSuspects(19, of: 19, at: 0))
        #expect(!record(1000, [], at: 1))
        #expect(!recordSuspects(31, of: 31, at: 2))
    }

    @Test mutating func `the rate does not depend on the number of pushes per token`() {
        // 110 tokens with eight pushes each in a minute; three of the bad tokens come last.
        let bad = suspected(22)
        for attempt in 0..<7 { #expect(!record(110, Array(bad[..<19]), at: attempt * 7)) }
        #expect(record(110, bad, at: 49))
    }

    @Test mutating func `a bad token that is retried counts once`() {
        let one = suspected(1)
        for second in 0..<50 { #expect(!record(1, one, at: second)) }
    }

    @Test mutating func `bad tokens older than a minute do not count`() {
        #expect(!recordSuspects(19, of: 19, at: 0))
        #expect(!recordSuspects(19, of: 19, at: 61))
        #expect(recordSuspects(1, of: 1, at: 62))
    }

    @Test mutating func `the rate uses only the answers of the last minute`() {
        #expect(!record(10_000, [], at: 0))
        #expect(recordSuspects(100, of: 20, at: 70))
    }

    private mutating func spikeToReport(at seconds: Int) -> [Int]? {
        detector.spikeToReport(now: .seconds(seconds)).map {
            [Int($0.lowerBound.components.seconds), Int($0.upperBound.components.seconds)]
        }
    }

    @Test mutating func `a new spike is reported once, including the minute before it`() {
        #expect(!recordSuspects(19, of: 19, at: 90))
        #expect(spikeToReport(at: 90) == nil)
        #expect(recordSuspects(11, of: 11, at: 100))
        #expect(spikeToReport(at: 101) == [40, 100])
        #expect(spikeToReport(at: 102) == nil)
    }

    @Test mutating func `a spike is reported again while it lasts, and at its end`() {
        #expect(recordSuspects(30, of: 30, at: 100))
        #expect(spikeToReport(at: 100) == [40, 100])
        #expect(spikeToReport(at: 109) == nil)
        #expect(spikeToReport(at: 110) == [40, 110])
        #expect(recordSuspects(1, of: 1, at: 112, probe: true))
        #expect(spikeToReport(at: 112) == [40, 112])
        #expect(!record(1, [], at: 150, probe: true))
        #expect(spikeToReport(at: 151) == [40, 150])
        #expect(spikeToReport(at: 200) == nil)
        #expect(recordSuspects(30, of: 30, at: 300))
        #expect(spikeToReport(at: 300) == [240, 300])
    }

    @Test mutating func `an unreported spike is reported together with the next one`() {
        #expect(recordSuspects(30, of: 30, at: 100))
        #expect(!record(1, [], at: 130, probe: true))
        #expect(recordSuspects(30, of: 30, at: 200))
        #expect(spikeToReport(at: 200) == [40, 200])
    }

    @Test mutating func `a spike lasts until a probe is accepted, regardless of other attempts in flight`() {
        #expect(recordSuspects(30, of: 30, at: 0))
        #expect(!record(10, [], at: 1))
        #expect(recordSuspects(1, of: 1, at: 2))
        #expect(recordSuspects(1, of: 1, at: 30, probe: true))
        #expect(!record(0, [], at: 90, probe: true))
        #expect(detector.isSpike)
        #expect(!record(1, [], at: 120, probe: true))
        #expect(!detector.isSpike)
        #expect(!recordSuspects(1, of: 1, at: 121))
    }
}

import PushProtocol
import PushSending
import Testing

@Suite struct SuspicionMonitorTests {
    private var monitor = SuspicionMonitor()

    private var people: Int64 = 0

    /// Doubts about tokens of as many people, none of whom was named before.
    private mutating func doubted(_ count: Int) -> [OwnerKey?] {
        (0..<count).map { _ in
            people += 1
            return OwnerKey(rawValue: people)
        }
    }

    private mutating func note(_ answers: Int, _ doubts: [OwnerKey?], at seconds: Int, probe: Bool = false) -> Bool {
        monitor.note(answers: answers, doubts: doubts, isProbe: probe, now: .seconds(seconds)) != nil
    }

    private mutating func noteDoubts(_ answers: Int, of people: Int, at seconds: Int, probe: Bool = false) -> Bool {
        let doubts = doubted(people)
        return note(answers, doubts, at: seconds, probe: probe)
    }

    @Test mutating func `S2: one user is one, however many tokens they invent`() {
        for second in 0..<10 {
            #expect(!note(25, Array(repeating: OwnerKey(rawValue: 1_000), count: 25), at: second))
        }
        #expect(!noteDoubts(19, of: 18, at: 10))
        #expect(noteDoubts(1, of: 1, at: 11))
    }

    @Test mutating func `S2: new registrations make no storm, however many people they are of`() {
        #expect(!note(500, Array(repeating: nil, count: 500), at: 0))
        #expect(!noteDoubts(20, of: 20, at: 1))
        #expect(noteDoubts(20, of: 20, at: 2))
    }

    @Test mutating func `S2: a probe that meets a new bad token opens nothing`() {
        #expect(noteDoubts(30, of: 30, at: 0))
        #expect(note(1, [nil], at: 30, probe: true))
        #expect(monitor.isStorm)
        #expect(!note(1, [], at: 60, probe: true))
        #expect(!monitor.isStorm)
    }

    @Test mutating func `B08: 30 of 100 within a minute are a storm`() {
        for second in 0..<10 { #expect(!note(7, [], at: second)) }
        #expect(!noteDoubts(19, of: 19, at: 10))
        #expect(noteDoubts(11, of: 11, at: 20))
    }

    @Test mutating func `a few bad tokens are bad tokens`() {
        #expect(!noteDoubts(19, of: 19, at: 0))
        #expect(!note(1000, [], at: 1))
        #expect(!noteDoubts(31, of: 31, at: 2))
    }

    @Test mutating func `how often each token is pushed to changes nothing`() {
        // A hundred and ten tokens, each of them pushed to eight times in a minute; the last bad ones come last.
        let bad = doubted(22)
        for round in 0..<7 { #expect(!note(110, Array(bad[..<19]), at: round * 7)) }
        #expect(note(110, bad, at: 49))
    }

    @Test mutating func `one bad token that is tried again and again is one`() {
        let one = doubted(1)
        for second in 0..<50 { #expect(!note(1, one, at: second)) }
    }

    @Test mutating func `what is older than a minute does not count`() {
        #expect(!noteDoubts(19, of: 19, at: 0))
        #expect(!noteDoubts(19, of: 19, at: 61))
        #expect(noteDoubts(1, of: 1, at: 62))
    }

    @Test mutating func `the share is taken of the last minute's answers alone`() {
        #expect(!note(10_000, [], at: 0))
        #expect(noteDoubts(100, of: 20, at: 70))
    }

    private mutating func news(at seconds: Int) -> [Int]? {
        monitor.news(now: .seconds(seconds)).map {
            [Int($0.lowerBound.components.seconds), Int($0.upperBound.components.seconds)]
        }
    }

    @Test mutating func `that there is a storm is told once, with the minute before it`() {
        #expect(!noteDoubts(19, of: 19, at: 90))
        #expect(news(at: 90) == nil)
        #expect(noteDoubts(11, of: 11, at: 100))
        #expect(news(at: 101) == [40, 100])
        #expect(news(at: 102) == nil)
    }

    @Test mutating func `it is told again as long as it lasts, and when it is over`() {
        #expect(noteDoubts(30, of: 30, at: 100))
        #expect(news(at: 100) == [40, 100])
        #expect(news(at: 109) == nil)
        #expect(news(at: 110) == [40, 110])
        #expect(noteDoubts(1, of: 1, at: 112, probe: true))
        #expect(news(at: 112) == [40, 112])
        #expect(!note(1, [], at: 150, probe: true))
        #expect(news(at: 151) == [40, 150])
        #expect(news(at: 200) == nil)
        #expect(noteDoubts(30, of: 30, at: 300))
        #expect(news(at: 300) == [240, 300])
    }

    @Test mutating func `a storm that nobody was told of is told with the next`() {
        #expect(noteDoubts(30, of: 30, at: 100))
        #expect(!note(1, [], at: 130, probe: true))
        #expect(noteDoubts(30, of: 30, at: 200))
        #expect(news(at: 200) == [40, 200])
    }

    @Test mutating func `it lasts until a probe is taken, whatever other rounds in flight say`() {
        #expect(noteDoubts(30, of: 30, at: 0))
        #expect(!note(10, [], at: 1))
        #expect(noteDoubts(1, of: 1, at: 2))
        #expect(noteDoubts(1, of: 1, at: 30, probe: true))
        #expect(!note(0, [], at: 90, probe: true))
        #expect(monitor.isStorm)
        #expect(!note(1, [], at: 120, probe: true))
        #expect(!monitor.isStorm)
        #expect(!noteDoubts(1, of: 1, at: 121))
    }
}

import FoundationEssentials
import PushSending
import Testing

@Suite struct SuspicionMonitorTests {
    private var monitor = SuspicionMonitor()

    private func doubted(_ count: Int) -> [UUID] { (0..<count).map { _ in UUID() } }

    private mutating func note(_ answers: Int, _ suspects: [UUID], at seconds: Int, probe: Bool = false) -> Bool {
        monitor.note(answers: answers, suspects: suspects, isProbe: probe, now: .seconds(seconds)) != nil
    }

    @Test mutating func `B08: 30 of 100 within a minute are a storm`() {
        for second in 0..<10 { #expect(!note(7, [], at: second)) }
        #expect(!note(19, doubted(19), at: 10))
        #expect(note(11, doubted(11), at: 20))
    }

    @Test mutating func `a few bad tokens are bad tokens`() {
        #expect(!note(19, doubted(19), at: 0))
        #expect(!note(1000, [], at: 1))
        #expect(!note(31, doubted(31), at: 2))
    }

    @Test mutating func `one bad token that is tried again and again is one`() {
        let one = doubted(1)
        for second in 0..<50 { #expect(!note(1, one, at: second)) }
    }

    @Test mutating func `what is older than a minute does not count`() {
        #expect(!note(19, doubted(19), at: 0))
        #expect(!note(19, doubted(19), at: 61))
        #expect(note(1, doubted(1), at: 62))
    }

    @Test mutating func `the share is taken of the last minute's answers alone`() {
        #expect(!note(10_000, [], at: 0))
        #expect(note(100, doubted(20), at: 70))
    }

    @Test mutating func `it lasts until a probe is taken, whatever other rounds in flight say`() {
        #expect(note(30, doubted(30), at: 0))
        #expect(!note(10, [], at: 1))
        #expect(note(1, doubted(1), at: 2))
        #expect(note(1, doubted(1), at: 30, probe: true))
        #expect(!note(0, [], at: 90, probe: true))
        #expect(monitor.isStorm)
        #expect(!note(1, [], at: 120, probe: true))
        #expect(!monitor.isStorm)
        #expect(!note(1, doubted(1), at: 121))
    }
}

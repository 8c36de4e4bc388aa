import FoundationEssentials
import PushProtocol
import Testing
import TestSupport

@testable import PushSending

@Suite struct RevocationSetTests {
    /// A counter: the set must not depend on ids being digests.
    private static func device(_ number: Int) -> UUID {
        UUID(uuidString: "00000000-0000-0000-0000-" + String(1 << 44 + number, radix: 16))!
    }

    @Test func `registrations up to the given moment are revoked`() {
        var set = RevocationSet(capacity: 10)
        let moment = Timestamp(milliseconds: 1_767_220_000_123)
        #expect(set.isEmpty && !set.isRevoked(Self.device(1), registeredAt: moment))
        set.revoke(Self.device(1), until: moment, at: .sample)
        #expect(set.isRevoked(Self.device(1), registeredAt: moment + .milliseconds(-1)))
        #expect(set.isRevoked(Self.device(1), registeredAt: moment))
        #expect(!set.isRevoked(Self.device(1), registeredAt: moment + .milliseconds(1)))
        #expect(!set.isRevoked(Self.device(2), registeredAt: moment))
    }

    @Test func `moments out of range are clamped`() {
        var set = RevocationSet(capacity: 10)
        set.revoke(Self.device(1), until: Timestamp(milliseconds: .max), at: .sample)
        set.revoke(Self.device(2), until: Timestamp(milliseconds: .min), at: .sample)
        #expect(set.isRevoked(Self.device(1), registeredAt: .sample))
        #expect(!set.isRevoked(Self.device(2), registeredAt: .sample))
        let last = Timestamp(milliseconds: 4_398_046_511_102)
        set.revoke(Self.device(3), until: last, at: .sample)
        #expect(set.isRevoked(Self.device(3), registeredAt: last))
        #expect(!set.isRevoked(Self.device(3), registeredAt: last + .milliseconds(1)))
    }

    @Test(arguments: [2, 3, 7, 64, 1000])
    func `the set behaves like a dictionary that drops its older half when full`(capacity: Int) {
        let seed = TestSeed.value
        var random = SplitMix(seed: seed)
        var set = RevocationSet(capacity: capacity)
        var (young, old): ([UUID: Int64], [UUID: Int64]) = ([:], [:])
        for _ in 0..<capacity * 20 {
            let device = Self.device(Int.random(in: 0..<capacity * 3, using: &random))
            let moment = Int64.random(in: 1_767_220_000_000..<1_767_220_000_050, using: &random)
            set.revoke(device, until: Timestamp(milliseconds: moment), at: .sample)
            // A repeat changes nothing.
            if moment > young[device] ?? old[device] ?? 0 {
                if young[device] == nil, young.count == capacity / 2 { (old, young) = (young, [:]) }
                young[device] = moment
            }

            let asked = Self.device(Int.random(in: 0..<capacity * 3, using: &random))
            let at = Int64.random(in: 1_767_219_999_999..<1_767_220_000_051, using: &random)
            let expected = (young[asked] ?? old[asked]).map { at <= $0 } ?? false
            #expect(set.isRevoked(asked, registeredAt: Timestamp(milliseconds: at)) == expected, "seed \(seed)")
            #expect(set.count == Set(young.keys).union(old.keys).count, "seed \(seed)")
        }
    }

    @Test func `a million devices take 16 MB, and few take little`() {
        var set = RevocationSet(capacity: 1_000_000)
        #expect(set.bytes == 0)
        for number in 0..<1000 { set.revoke(Self.device(number), until: .sample, at: .sample) }
        #expect(set.bytes <= 1000 * 12 * 4)
        for number in 1000..<1_000_000 { set.revoke(Self.device(number), until: .sample, at: .sample) }
        #expect(set.count == 1_000_000 && set.bytes <= 16_100_000)
        for number in stride(from: 0, to: 1_000_000, by: 997) {
            #expect(set.isRevoked(Self.device(number), registeredAt: .sample))
        }
        set.revoke(Self.device(1_000_000), until: .sample, at: .sample)
        #expect(set.count == 500_001 && !set.isRevoked(Self.device(0), registeredAt: .sample))
    }

    @Test func `a full set returns the time of the last dropped revocation`() {
        var set = RevocationSet(capacity: 4)
        func lose(_ number: Int, at seconds: Int) {
            set.revoke(Self.device(number), until: .sample, at: .sample + .seconds(seconds))
        }
        // Two tables of two devices each.
        lose(1, at: 20)
        lose(2, at: 10)
        lose(3, at: 30)
        lose(4, at: 40)
        #expect(set.droppedUntil == nil)
        lose(5, at: 50)
        #expect(set.droppedUntil == .sample + .seconds(20))
        lose(6, at: 60)
        lose(7, at: 70)
        #expect(set.droppedUntil == .sample + .seconds(40))
    }

    @Test func `given devices that are revoked again and again, then none takes a second place or displaces another`() {
        var set = RevocationSet(capacity: 4)
        func lose(_ number: Int, until seconds: Int = 0) {
            set.revoke(Self.device(number), until: .sample + .seconds(seconds), at: .sample + .seconds(seconds))
        }
        for number in 1...4 { lose(number) }
        for _ in 0..<10 { for number in 1...4 { lose(number) } }
        #expect(set.count == 4 && set.droppedUntil == nil)
        #expect((1...4).allSatisfy { set.isRevoked(Self.device($0), registeredAt: .sample) })
    }

    @Test func `given a device that is lost again, then it counts once, and nothing is forgotten for it`() {
        var set = RevocationSet(capacity: 4)
        func lose(_ number: Int, until seconds: Int) {
            set.revoke(Self.device(number), until: .sample + .seconds(seconds), at: .sample + .seconds(seconds))
        }
        for number in 1...3 { lose(number, until: 0) }
        for round in 1...2 {
            for number in 1...2 { lose(number, until: round) }
        }
        #expect(set.count == 3 && set.droppedUntil == nil)
        #expect((1...2).allSatisfy { set.isRevoked(Self.device($0), registeredAt: .sample + .seconds(2)) })
        #expect(set.isRevoked(Self.device(3), registeredAt: .sample))
    }
}

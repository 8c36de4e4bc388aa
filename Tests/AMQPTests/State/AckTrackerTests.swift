import Testing
import TestSupport

@testable import AMQP

@Suite struct AckTrackerTests {
    private let start = ContinuousClock.now

    private func tracker(_ count: UInt64) throws -> AckTracker {
        var tracker = AckTracker()
        for tag in 1...count { try tracker.delivered(tag, now: start) }
        return tracker
    }

    private func after(_ milliseconds: Int) -> ContinuousClock.Instant { start + .milliseconds(milliseconds) }

    @Test func `a long-held delivery limits the slots and is never covered by a multiple`()
        throws
    {
        var tracker = AckTracker()
        try tracker.delivered(1, bytes: 10, now: start)
        var sent: [AckTracker.Acknowledgement] = []
        for tag in UInt64(2)...50_000 {
            try tracker.delivered(tag, now: start)
            #expect(tracker.acknowledge(tag, now: start) == true)
            sent += tracker.settlements(now: start, all: true)
            #expect(tracker.length <= AckTracker.maximumSlots + 1)
        }
        #expect(sent.count == 49_999)
        #expect(!sent.contains { if case .ack(_, multiple: true) = $0 { true } else { false } })
        #expect(tracker.pending == 1 && tracker.pendingBytes == 10)
        #expect(tracker.acknowledge(1, now: after(5)) == true)
        #expect(tracker.acknowledge(1, now: after(5)) == false)
        #expect(tracker.settlements(now: after(5)) == [.ack(1, multiple: false)])
        #expect(tracker.takeLatencies().last == .milliseconds(5))
        // Without stragglers one acknowledgement covers several deliveries again.
        for tag in UInt64(50_001)...50_004 { try tracker.delivered(tag, now: start) }
        for tag in UInt64(50_001)...50_004 { _ = tracker.acknowledge(tag, now: start) }
        #expect(tracker.settlements(now: start) == [.ack(50_004, multiple: true)])
    }

    @Test func `the oldest arrival is that of the oldest unsettled delivery, also of a straggler`() throws {
        var tracker = AckTracker()
        #expect(tracker.oldestArrival == nil)
        for tag in UInt64(1)...3 { try tracker.delivered(tag, now: after(Int(tag))) }
        _ = tracker.acknowledge(2, now: after(10))
        _ = tracker.settlements(now: after(10))
        #expect(tracker.oldestArrival == after(1))
        _ = tracker.acknowledge(1, now: after(10))
        _ = tracker.settlements(now: after(10))
        #expect(tracker.oldestArrival == after(3))
        for tag in UInt64(4)...10_000 {
            try tracker.delivered(tag, now: after(Int(tag)))
            _ = tracker.acknowledge(tag, now: after(Int(tag)))
            _ = tracker.settlements(now: after(Int(tag)), all: true)
        }
        #expect(tracker.oldestArrival == after(3))
        _ = tracker.acknowledge(3, now: after(10_000))
        _ = tracker.settlements(now: after(10_000))
        #expect(tracker.oldestArrival == nil && tracker.pending == 0)
    }

    @Test func `pending bytes count until any settlement`() throws {
        var tracker = AckTracker()
        for tag in UInt64(1)...3 { try tracker.delivered(tag, bytes: 100, now: start) }
        #expect(tracker.pendingBytes == 300)
        _ = tracker.acknowledge(1, now: start)
        _ = tracker.requeue(2)
        #expect(tracker.pendingBytes == 100)
        let rejected = [tracker.reject(3), tracker.reject(3)]
        #expect(rejected == [true, false])
        #expect(tracker.pendingBytes == 0)
        #expect(tracker.settlements(now: start).contains(.reject(3)))
    }

    @Test func `a settled prefix is acknowledged at once with one multiple`() throws {
        var tracker = try tracker(10)
        for tag in UInt64(1)...4 { #expect(tracker.acknowledge(tag, now: start) == true) }
        #expect(tracker.settlements(now: start) == [.ack(4, multiple: true)])
        #expect(tracker.settlements(now: start) == [])
        #expect(tracker.deadline == nil)
        #expect(tracker.pending == 6)
    }

    @Test func `each acknowledgement reports the time since its delivery`() throws {
        var tracker = AckTracker()
        for tag in UInt64(1)...4 { try tracker.delivered(tag, now: after(Int(tag))) }
        for tag in UInt64(1)...2 { _ = tracker.acknowledge(tag, now: after(6)) }
        _ = tracker.acknowledge(4, now: after(6))
        #expect(tracker.takeLatencies() == [])
        _ = tracker.settlements(now: after(7))
        #expect(tracker.takeLatencies() == [.milliseconds(6), .milliseconds(5)])
        // Delivery 3 blocks delivery 4.
        _ = tracker.settlements(now: after(16))
        #expect(tracker.takeLatencies() == [.milliseconds(12)])
        _ = tracker.requeue(3)
        _ = tracker.settlements(now: after(70))
        #expect(tracker.takeLatencies() == [])
    }

    @Test func `a single acknowledgement is not a multiple`() throws {
        var tracker = try tracker(3)
        _ = tracker.acknowledge(1, now: start)
        #expect(tracker.settlements(now: start, all: true) == [.ack(1, multiple: false)])
    }

    @Test func `deliveries behind a slow one are acknowledged singly after a delay`() throws {
        var tracker = try tracker(4)
        for tag in UInt64(2)...4 { _ = tracker.acknowledge(tag, now: start) }
        #expect(tracker.settlements(now: after(9)) == [])
        #expect(tracker.deadline == after(10))
        #expect(
            tracker.settlements(now: after(10))
                == [.ack(2, multiple: false), .ack(3, multiple: false), .ack(4, multiple: false)])
        _ = tracker.acknowledge(1, now: after(600))
        #expect(tracker.settlements(now: after(620)) == [.ack(1, multiple: false)])
    }

    @Test func `a multiple never names an already settled tag`() throws {
        var tracker = try tracker(4)
        _ = tracker.requeue(4)
        #expect(tracker.settlements(now: start) == [.requeue(4)])
        for tag in UInt64(1)...3 { _ = tracker.acknowledge(tag, now: start) }
        #expect(tracker.settlements(now: start, all: true) == [.ack(3, multiple: true)])
    }

    @Test func `no delivery is settled twice`() throws {
        var tracker = try tracker(2)
        #expect(tracker.acknowledge(1, now: start) == true)
        #expect(tracker.acknowledge(1, now: start) == false)
        #expect(tracker.requeue(1) == false)
        #expect(tracker.acknowledge(3, now: start) == false)
        #expect(tracker.acknowledge(0, now: start) == false)
        _ = tracker.settlements(now: start, all: true)
        #expect(tracker.acknowledge(1, now: start) == false)
    }

    @Test func `a repeated delivery tag is a protocol violation`() throws {
        var tracker = try tracker(2)
        #expect(throws: AMQPError.self) { try tracker.delivered(2, now: start) }
    }

    /// Models a broker: it knows the unsettled tags and closes the channel on any other.
    @Test(arguments: 0..<50) func `any order of settlements settles every delivery exactly once`(seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        var tracker = AckTracker()
        var unsettled: Set<UInt64> = []
        var pendingTags: [UInt64] = []
        var last: UInt64 = 0
        var now = start
        func carryOut(_ settlements: [AckTracker.Acknowledgement]) throws {
            for settlement in settlements {
                switch settlement {
                case .ack(let tag, multiple: true):
                    try #require(unsettled.contains(tag), "406 unknown delivery tag \(tag)")
                    let covered = unsettled.filter { $0 <= tag }
                    #expect(covered.isDisjoint(with: pendingTags), "acknowledged a pending delivery")
                    unsettled.subtract(covered)
                case .ack(let tag, multiple: false), .requeue(let tag), .reject(let tag):
                    try #require(unsettled.remove(tag) != nil, "406 unknown delivery tag \(tag)")
                    #expect(!pendingTags.contains(tag))
                }
            }
        }
        for _ in 0..<500 {
            now += .milliseconds(Int.random(in: 0..<60, using: &random))
            for _ in 0..<Int.random(in: 0..<5, using: &random) {
                last += 1
                try tracker.delivered(last, now: start)
                unsettled.insert(last)
                pendingTags.append(last)
            }
            for _ in 0..<Int.random(in: 0..<5, using: &random) where !pendingTags.isEmpty {
                let tag = pendingTags.remove(at: Int.random(in: pendingTags.indices, using: &random))
                let isHeld =
                    Int.random(in: 0..<8, using: &random) == 0
                    ? tracker.requeue(tag) : tracker.acknowledge(tag, now: now)
                #expect(isHeld)
            }
            try carryOut(tracker.settlements(now: now))
        }
        for tag in pendingTags { #expect(tracker.acknowledge(tag, now: now) == true) }
        pendingTags = []
        try carryOut(tracker.settlements(now: now, all: true))
        #expect(unsettled.isEmpty)
        #expect(tracker.pending == 0)
    }
}

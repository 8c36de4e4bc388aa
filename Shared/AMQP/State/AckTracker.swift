internal import DequeModule

/// Tracks the unsettled deliveries of one channel and decides which settlements to send. Pure: time is an argument.
///
/// Acknowledges the longest settled prefix with one `multiple`. When a slow delivery blocks the prefix, later settled
/// deliveries are acknowledged one by one after a short delay. One slow handler then does not block the whole prefetch
/// window (Shared/Messaging/BrokerFacts.md §2.11).
struct AckTracker {
    /// A settlement to send.
    enum Acknowledgement: Hashable, Sendable {
        case ack(UInt64, multiple: Bool)
        case requeue(UInt64)
        /// The broker dead-letters the message.
        case reject(UInt64)
    }

    /// How long a blocked prefix delays single acknowledgements. Each of them is a frame and a command to the queue;
    /// batches of one stage end within a few milliseconds of each other.
    static let singleAckDelay = Duration.milliseconds(10)

    private enum Slot {
        case pending
        /// Acknowledged by the stage, not yet sent.
        case completed
        case settled
    }

    private struct Arrival {
        let time: ContinuousClock.Instant
        let bytes: Int
    }

    /// The most slots. Above it the oldest pending delivery becomes a straggler; otherwise one slow delivery would keep
    /// a slot for every later one.
    static let maximumSlots = 8192

    private var slots: Deque<Slot> = []
    /// The arrival time and size of each delivery in `slots`.
    private var arrivals: Deque<Arrival> = []
    /// Pending deliveries older than `slots`. While there are any, no acknowledgement is `multiple`.
    private var stragglers: [UInt64: Arrival] = [:]
    private var base: UInt64 = 1
    private var completed = 0
    private var returns: [Acknowledgement] = []
    /// Since when an acknowledgement is waiting to be sent.
    private var waitingSince: ContinuousClock.Instant?

    /// The number of slots; at most ``maximumSlots`` after ``settlements(now:all:)``.
    var length: Int { slots.count }

    private(set) var pending = 0
    /// The arrival time of the oldest unsettled delivery, after ``settlements(now:all:)``; `nil` without one.
    var oldestArrival: ContinuousClock.Instant? {
        let oldest = slots.isEmpty ? nil : arrivals.first?.time
        guard !stragglers.isEmpty else { return oldest }
        return (stragglers.values.map(\.time) + [oldest].compactMap(\.self)).min()
    }
    private(set) var pendingBytes = 0
    /// The times from delivery to acknowledgement since the last ``takeLatencies()``.
    private var latencies: [Duration] = []

    /// Notes a delivery. Tags on a channel increase by one; a gap belongs to no subscription.
    mutating func delivered(_ tag: UInt64, bytes: Int = 0, now: ContinuousClock.Instant) throws(AMQPError) {
        let next = base + UInt64(slots.count)
        guard tag >= next, tag - next < 1 << 16 else {
            throw AMQPError(
                .protocolViolation, operation: "receive a delivery", detail: "expected tag \(next), received \(tag)")
        }
        for _ in next..<tag { append(.settled, Arrival(time: now, bytes: 0)) }
        append(.pending, Arrival(time: now, bytes: bytes))
        pending += 1
        pendingBytes += bytes
        if slots.count > Self.maximumSlots { evictOldest() }
    }

    private mutating func append(_ slot: Slot, _ arrival: Arrival) {
        slots.append(slot)
        arrivals.append(arrival)
    }

    /// Moves the oldest deliveries out of `slots`. A completed one stays until its acknowledgement is sent.
    private mutating func evictOldest() {
        while slots.count > Self.maximumSlots, let slot = slots.first, let arrival = arrivals.first {
            switch slot {
            case .completed: return
            case .pending: stragglers[base] = arrival
            case .settled: break
            }
            removeFirst()
        }
    }

    private mutating func removeFirst() {
        slots.removeFirst()
        arrivals.removeFirst()
        base += 1
    }

    /// Returns and clears the times from delivery to acknowledgement.
    mutating func takeLatencies() -> [Duration] {
        guard !latencies.isEmpty else { return [] }
        defer { latencies.removeAll() }
        return latencies
    }

    /// Marks a delivery for acknowledgement. False when it is not pending.
    mutating func acknowledge(_ tag: UInt64, now: ContinuousClock.Instant) -> Bool {
        if let arrival = takeStraggler(tag) {
            latencies.append(now - arrival.time)
            returns.append(.ack(tag, multiple: false))
            return true
        }
        guard take(tag, as: .completed) else { return false }
        completed += 1
        if waitingSince == nil { waitingSince = now }
        return true
    }

    /// Marks a delivery for requeue. False when it is not pending.
    mutating func requeue(_ tag: UInt64) -> Bool { returnDelivery(tag, .requeue(tag)) }

    /// Marks a delivery for rejection. False when it is not pending.
    mutating func reject(_ tag: UInt64) -> Bool { returnDelivery(tag, .reject(tag)) }

    private mutating func returnDelivery(_ tag: UInt64, _ settlement: Acknowledgement) -> Bool {
        guard takeStraggler(tag) != nil || take(tag, as: .settled) else { return false }
        returns.append(settlement)
        return true
    }

    private mutating func takeStraggler(_ tag: UInt64) -> Arrival? {
        guard tag < base, let arrival = stragglers.removeValue(forKey: tag) else { return nil }
        pending -= 1
        pendingBytes -= arrival.bytes
        return arrival
    }

    private mutating func take(_ tag: UInt64, as slot: Slot) -> Bool {
        guard tag >= base, tag - base < UInt64(slots.count) else { return false }
        let index = Int(tag - base)
        switch slots[index] {
        case .completed, .settled: return false
        case .pending:
            slots[index] = slot
            pending -= 1
            pendingBytes -= arrivals[index].bytes
            return true
        }
    }

    /// The settlements to send now. With `all`, single acknowledgements are not delayed.
    mutating func settlements(now: ContinuousClock.Instant, all: Bool = false) -> [Acknowledgement] {
        var settlements = returns
        returns.removeAll(keepingCapacity: true)
        acknowledgePrefix(now, into: &settlements)
        if completed > 0, let since = waitingSince, all || now - since >= Self.singleAckDelay {
            acknowledgeSingly(now, into: &settlements)
        }
        if completed == 0 { waitingSince = nil }
        return settlements
    }

    /// When ``settlements(now:all:)`` has single acknowledgements to send.
    var deadline: ContinuousClock.Instant? { waitingSince.map { $0 + Self.singleAckDelay } }

    /// Drops the settled prefix and acknowledges it. The tag sent must be one that the broker still has unacknowledged;
    /// otherwise it closes the channel with 406.
    private mutating func acknowledgePrefix(_ now: ContinuousClock.Instant, into settlements: inout [Acknowledgement]) {
        let mayCover = stragglers.isEmpty
        var last: (tag: UInt64, covers: Int)?
        while let slot = slots.first {
            if case .pending = slot { break }
            if case .completed = slot {
                if !mayCover, let last { settlements.append(.ack(last.tag, multiple: false)) }
                last = (base, (last?.covers ?? 0) + 1)
                latencies.append(now - arrivals[arrivals.startIndex].time)
            }
            removeFirst()
        }
        guard let last else { return }
        completed -= last.covers
        settlements.append(.ack(last.tag, multiple: mayCover && last.covers > 1))
    }

    private mutating func acknowledgeSingly(_ now: ContinuousClock.Instant, into settlements: inout [Acknowledgement]) {
        for index in slots.indices {
            guard case .completed = slots[index] else { continue }
            slots[index] = .settled
            latencies.append(now - arrivals[index].time)
            settlements.append(.ack(base + UInt64(index), multiple: false))
        }
        completed = 0
    }
}

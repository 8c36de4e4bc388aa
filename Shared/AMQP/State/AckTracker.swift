internal import DequeModule

/// Which deliveries of one channel are in hand, and which settlements to send. Pure: time comes in as an argument.
///
/// What is done is acknowledged at once, as one `multiple` for the longest settled prefix: the stages settle whole batches,
/// so there is company already. When a slow delivery holds the prefix up, what is done behind it is acknowledged singly a
/// little later, so that one slow handler does not freeze the whole prefetch window (§2.11 of the messaging reference).
struct AckTracker {
    /// A frame to send.
    enum Settlement: Hashable, Sendable {
        case ack(UInt64, multiple: Bool)
        case requeue(UInt64)
        /// The broker dead-letters it.
        case reject(UInt64)
    }

    /// How long a delivery may hold up what is done behind it: some milliseconds, by which batches differ, since every
    /// single acknowledgement is a frame of its own and a command to the queue.
    static let stall = Duration.milliseconds(10)

    private enum Slot {
        case pending
        /// Done; the broker does not know yet.
        case completed
        case settled
    }

    private struct Arrival {
        let time: ContinuousClock.Instant
        let bytes: Int
    }

    /// The most slots. Beyond it the oldest pending delivery becomes a straggler. Otherwise one held delivery would keep
    /// a slot for every later one.
    static let longestRun = 8192

    private var slots: Deque<Slot> = []
    /// When each of `slots` was delivered, and its size.
    private var arrivals: Deque<Arrival> = []
    /// Pending deliveries older than all `slots`. While there are any, no acknowledgement is `multiple`.
    private var stragglers: [UInt64: Arrival] = [:]
    private var base: UInt64 = 1
    private var completed = 0
    private var returns: [Settlement] = []
    /// Since when something completed has been waiting to be told.
    private var waitingSince: ContinuousClock.Instant?

    /// The number of slots; at most ``longestRun`` after ``settlements(now:all:)``.
    var length: Int { slots.count }

    /// Deliveries that are not settled by their taker.
    private(set) var pending = 0
    /// The sizes of their bodies together.
    private(set) var pendingBytes = 0
    /// How long it took from each delivery to its acknowledgement, since the last ``takeWaits()``.
    private var waits: [Duration] = []

    /// Notes a delivery. Tags count up by one on a channel; a gap belongs to no consumer of ours.
    mutating func delivered(_ tag: UInt64, bytes: Int = 0, now: ContinuousClock.Instant) throws(AMQPError) {
        let next = base + UInt64(slots.count)
        guard tag >= next, tag - next < 1 << 16 else {
            throw AMQPError(
                .protocolViolation, operation: "receive a delivery", detail: "tag \(tag) came where \(next) was due")
        }
        for _ in next..<tag { append(.settled, Arrival(time: now, bytes: 0)) }
        append(.pending, Arrival(time: now, bytes: bytes))
        pending += 1
        pendingBytes += bytes
        if slots.count > Self.longestRun { shorten() }
    }

    private mutating func append(_ slot: Slot, _ arrival: Arrival) {
        slots.append(slot)
        arrivals.append(arrival)
    }

    /// Takes the oldest deliveries out of the run. A completed one stays until its acknowledgement is sent.
    private mutating func shorten() {
        while slots.count > Self.longestRun, let slot = slots.first, let arrival = arrivals.first {
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

    /// How long it took from each delivery to its acknowledgement, of those told since this was last asked.
    mutating func takeWaits() -> [Duration] {
        guard !waits.isEmpty else { return [] }
        defer { waits.removeAll() }
        return waits
    }

    /// Marks a delivery as done. False when it is not in hand (settled twice, or never delivered).
    mutating func acknowledge(_ tag: UInt64, now: ContinuousClock.Instant) -> Bool {
        if let arrival = takeStraggler(tag) {
            waits.append(now - arrival.time)
            returns.append(.ack(tag, multiple: false))
            return true
        }
        guard take(tag, as: .completed) else { return false }
        completed += 1
        if waitingSince == nil { waitingSince = now }
        return true
    }

    /// Gives a delivery back to its queue. False when it is not in hand.
    mutating func requeue(_ tag: UInt64) -> Bool { giveUp(tag, .requeue(tag)) }

    /// Has the broker dead-letter a delivery. Returns false when the delivery is not pending.
    mutating func reject(_ tag: UInt64) -> Bool { giveUp(tag, .reject(tag)) }

    private mutating func giveUp(_ tag: UInt64, _ settlement: Settlement) -> Bool {
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

    /// What to send now. With `all`, what is done behind a slow delivery does not wait for it.
    mutating func settlements(now: ContinuousClock.Instant, all: Bool = false) -> [Settlement] {
        var settlements = returns
        returns.removeAll(keepingCapacity: true)
        acknowledgePrefix(now, into: &settlements)
        if completed > 0, let since = waitingSince, all || now - since >= Self.stall {
            acknowledgeSingly(now, into: &settlements)
        }
        if completed == 0 { waitingSince = nil }
        return settlements
    }

    /// When ``settlements(now:all:)`` next has something to say without anything new happening.
    var deadline: ContinuousClock.Instant? { waitingSince.map { $0 + Self.stall } }

    /// Drops the settled prefix, and acknowledges what of it the broker does not know. The last tag named must be one
    /// that it still waits for, or it closes the channel with 406.
    private mutating func acknowledgePrefix(_ now: ContinuousClock.Instant, into settlements: inout [Settlement]) {
        let mayCover = stragglers.isEmpty
        var last: (tag: UInt64, covers: Int)?
        while let slot = slots.first {
            if case .pending = slot { break }
            if case .completed = slot {
                if !mayCover, let last { settlements.append(.ack(last.tag, multiple: false)) }
                last = (base, (last?.covers ?? 0) + 1)
                waits.append(now - arrivals[arrivals.startIndex].time)
            }
            removeFirst()
        }
        guard let last else { return }
        completed -= last.covers
        settlements.append(.ack(last.tag, multiple: mayCover && last.covers > 1))
    }

    private mutating func acknowledgeSingly(_ now: ContinuousClock.Instant, into settlements: inout [Settlement]) {
        for index in slots.indices {
            guard case .completed = slots[index] else { continue }
            slots[index] = .settled
            waits.append(now - arrivals[index].time)
            settlements.append(.ack(base + UInt64(index), multiple: false))
        }
        completed = 0
    }
}

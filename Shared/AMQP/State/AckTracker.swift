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

    private var slots: Deque<Slot> = []
    /// When each of `slots` was delivered.
    private var arrivals: Deque<ContinuousClock.Instant> = []
    private var base: UInt64 = 1
    private var completed = 0
    private var requeues: [UInt64] = []
    /// Since when something completed has been waiting to be told.
    private var waitingSince: ContinuousClock.Instant?

    /// Deliveries that are not settled by their taker.
    private(set) var pending = 0
    /// How long it took from each delivery to its acknowledgement, since the last ``takeWaits()``.
    private var waits: [Duration] = []

    /// Notes a delivery. Tags count up by one on a channel; a gap belongs to no consumer of ours.
    mutating func delivered(_ tag: UInt64, now: ContinuousClock.Instant) throws(AMQPError) {
        let next = base + UInt64(slots.count)
        guard tag >= next, tag - next < 1 << 16 else {
            throw AMQPError(
                .protocolViolation, operation: "receive a delivery", detail: "tag \(tag) came where \(next) was due")
        }
        for _ in next..<tag { append(.settled, now) }
        append(.pending, now)
        pending += 1
    }

    private mutating func append(_ slot: Slot, _ now: ContinuousClock.Instant) {
        slots.append(slot)
        arrivals.append(now)
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
        guard take(tag, as: .completed) else { return false }
        completed += 1
        if waitingSince == nil { waitingSince = now }
        return true
    }

    /// Gives a delivery back to its queue. False when it is not in hand.
    mutating func requeue(_ tag: UInt64) -> Bool {
        guard take(tag, as: .settled) else { return false }
        requeues.append(tag)
        return true
    }

    private mutating func take(_ tag: UInt64, as slot: Slot) -> Bool {
        guard tag >= base, tag - base < UInt64(slots.count) else { return false }
        let index = Int(tag - base)
        switch slots[index] {
        case .completed, .settled: return false
        case .pending:
            slots[index] = slot
            pending -= 1
            return true
        }
    }

    /// What to send now. With `all`, what is done behind a slow delivery does not wait for it.
    mutating func settlements(now: ContinuousClock.Instant, all: Bool = false) -> [Settlement] {
        var settlements = requeues.map { Settlement.requeue($0) }
        requeues.removeAll(keepingCapacity: true)
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
        var last: (tag: UInt64, covers: Int)?
        while let slot = slots.first {
            if case .pending = slot { break }
            if case .completed = slot {
                last = (base, (last?.covers ?? 0) + 1)
                waits.append(now - arrivals[arrivals.startIndex])
            }
            removeFirst()
        }
        guard let last else { return }
        completed -= last.covers
        settlements.append(.ack(last.tag, multiple: last.covers > 1))
    }

    private mutating func acknowledgeSingly(_ now: ContinuousClock.Instant, into settlements: inout [Settlement]) {
        for index in slots.indices {
            guard case .completed = slots[index] else { continue }
            slots[index] = .settled
            waits.append(now - arrivals[index])
            settlements.append(.ack(base + UInt64(index), multiple: false))
        }
        completed = 0
    }
}

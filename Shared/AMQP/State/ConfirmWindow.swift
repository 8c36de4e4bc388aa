internal import DequeModule

/// What is published and not yet confirmed, in order, by the channel's sequence numbers. Pure.
///
/// A ring from the low-water mark: confirms arrive in any order, singly or up to a number (§1.5 of the messaging
/// reference). Sequence numbers count from 1 on every fresh channel.
struct ConfirmWindow<Entry> {
    private struct Slot {
        var entry: Entry
        var bytes: Int
    }

    let limits: AMQPPublishWindow
    private var slots: Deque<Slot?> = []
    /// The sequence number of the first slot.
    private var base: UInt64 = 1
    private(set) var count = 0
    private(set) var bytes = 0

    init(_ limits: AMQPPublishWindow) { self.limits = limits }

    /// Whether a message of `size` bytes may go now. An empty window takes any.
    func hasRoom(for size: Int) -> Bool {
        count == 0 || (count < limits.messages && bytes + size <= limits.bytes)
    }

    /// Notes a message that is being published, and gives its sequence number.
    @discardableResult mutating func append(_ entry: Entry, bytes size: Int) -> UInt64 {
        slots.append(Slot(entry: entry, bytes: size))
        count += 1
        bytes += size
        return base + UInt64(slots.count) - 1
    }

    /// The entry at a sequence number, while it is unconfirmed.
    subscript(sequence: UInt64) -> Entry? {
        guard sequence >= base, sequence - base < UInt64(slots.count) else { return nil }
        return slots[Int(sequence - base)]?.entry
    }

    /// Takes out what a confirm (or a rejection) speaks of: the tag, or with `multiple` every tag up to it, or all with
    /// `multiple` and 0. A tag settled before is nothing new; one never published is a desynchronised channel.
    mutating func settle(_ tag: UInt64, multiple: Bool, each: (Entry) -> Void) throws(AMQPError) {
        let last = base + UInt64(slots.count) - 1
        guard tag <= last else {
            throw AMQPError(
                .protocolViolation, operation: "receive a confirm", detail: "\(tag) of \(last) published messages")
        }
        if multiple {
            let end = tag == 0 ? last : tag
            while base <= end, let slot = slots.popFirst() {
                base += 1
                if let slot { settled(slot, each) }
            }
        } else if tag >= base, let slot = slots[Int(tag - base)] {
            slots[Int(tag - base)] = nil
            settled(slot, each)
        }
        while let first = slots.first, first == nil {
            slots.removeFirst()
            base += 1
        }
    }

    private mutating func settled(_ slot: Slot, _ each: (Entry) -> Void) {
        count -= 1
        bytes -= slot.bytes
        each(slot.entry)
    }

    /// Takes out everything unconfirmed, oldest first, and starts again at 1: the channel is gone.
    mutating func reset() -> [Entry] {
        defer {
            slots.removeAll()
            base = 1
            count = 0
            bytes = 0
        }
        return slots.compactMap { $0?.entry }
    }
}

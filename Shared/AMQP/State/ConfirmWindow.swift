internal import DequeModule

/// The published, unconfirmed messages by their sequence numbers on the channel. Pure.
///
/// A ring from the lowest unconfirmed number. Confirms arrive in any order, one by one or as `multiple` (RabbitMQ:
/// Publisher Confirms). Every channel starts at 1.
struct ConfirmWindow<Element> {
    private struct Slot {
        var element: Element
        var bytes: Int
    }

    let limits: AMQPPublishWindow
    private var slots: Deque<Slot?> = []
    /// The sequence number of the first slot.
    private var base: UInt64 = 1
    private(set) var count = 0
    private(set) var bytes = 0

    init(_ limits: AMQPPublishWindow) { self.limits = limits }

    /// Whether a message of `size` bytes may be sent now. An empty window accepts any size.
    func hasRoom(for size: Int) -> Bool {
        count == 0 || (count < limits.messages && bytes + size <= limits.bytes)
    }

    /// Adds a message and returns its sequence number.
    @discardableResult mutating func append(_ element: Element, bytes size: Int) -> UInt64 {
        slots.append(Slot(element: element, bytes: size))
        count += 1
        bytes += size
        return base + UInt64(slots.count) - 1
    }

    /// The element with the lowest sequence number.
    var oldest: Element? { slots.first??.element }

    /// The unconfirmed element with a sequence number.
    subscript(sequence: UInt64) -> Element? {
        guard sequence >= base, sequence - base < UInt64(slots.count) else { return nil }
        return slots[Int(sequence - base)]?.element
    }

    /// Removes the elements of an ack or nack: the tag; with `multiple`, all up to the tag; with `multiple` and 0, all.
    /// Ignores settled tags. Throws on a tag that was not published.
    mutating func settle(_ tag: UInt64, multiple: Bool, each: (Element) -> Void) throws(AMQPError) {
        let last = base + UInt64(slots.count) - 1
        guard tag <= last else {
            throw AMQPError(
                .protocolViolation, operation: "receive a confirm", detail: "tag \(tag) of \(last) published messages")
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

    private mutating func settled(_ slot: Slot, _ each: (Element) -> Void) {
        count -= 1
        bytes -= slot.bytes
        each(slot.element)
    }

    /// Removes and returns all elements, oldest first, and starts over at 1. Called when the channel is closed.
    mutating func reset() -> [Element] {
        defer {
            slots.removeAll()
            base = 1
            count = 0
            bytes = 0
        }
        return slots.compactMap { $0?.element }
    }
}

internal import Synchronization

/// What callers hand to the consuming thread. One lock and one wake-up for a whole batch of settlements.
final class ConsumerInbox: Sendable {
    struct Orders: Sendable {
        var acknowledged: [AMQPDeliveryTag] = []
        var requeued: [AMQPDeliveryTag] = []
        var rejected: [AMQPDeliveryTag] = []
        var subscribed: [AMQPSubscription] = []
        var cancelled: [(id: UInt64, completion: @Sendable () -> Void)] = []
    }

    private struct Contents {
        var orders = Orders()
        var lastID: UInt64 = 0
        var isClosed = false
    }

    private let contents = Mutex(Contents())
    private let wakeup: Wakeup

    init(wakeup: Wakeup) { self.wakeup = wakeup }

    func acknowledge(_ tags: [AMQPDeliveryTag]) {
        guard !tags.isEmpty else { return }
        contents.withLock { if !$0.isClosed { $0.orders.acknowledged += tags } }
        wakeup.signal()
    }

    func requeue(_ tags: [AMQPDeliveryTag]) {
        guard !tags.isEmpty else { return }
        contents.withLock { if !$0.isClosed { $0.orders.requeued += tags } }
        wakeup.signal()
    }

    func reject(_ tags: [AMQPDeliveryTag]) {
        guard !tags.isEmpty else { return }
        contents.withLock { if !$0.isClosed { $0.orders.rejected += tags } }
        wakeup.signal()
    }

    func subscribe(
        _ queue: String, prefetch: UInt16, isStream: Bool = false,
        arguments: @escaping @Sendable () -> [String: AMQPValue] = { [:] }
    ) -> AMQPSubscription {
        let (subscription, isClosed) = contents.withLock { contents in
            contents.lastID += 1
            let subscription = AMQPSubscription(
                id: contents.lastID, queue: queue, prefetch: prefetch, isStream: isStream, arguments: arguments,
                consumer: self)
            if !contents.isClosed { contents.orders.subscribed.append(subscription) }
            return (subscription, contents.isClosed)
        }
        if isClosed { subscription.end() } else { wakeup.signal() }
        return subscription
    }

    func cancel(_ id: UInt64, completion: @escaping @Sendable () -> Void) {
        let isClosed = contents.withLock { contents in
            if !contents.isClosed { contents.orders.cancelled.append((id, completion)) }
            return contents.isClosed
        }
        if isClosed { completion() } else { wakeup.signal() }
    }

    func take() -> Orders { contents.withLock { Self.take(&$0) } }

    /// Takes what is left; from now on nothing is accepted.
    func close() -> Orders {
        contents.withLock { contents in
            contents.isClosed = true
            return Self.take(&contents)
        }
    }

    private static func take(_ contents: inout Contents) -> Orders {
        defer { contents.orders = Orders() }
        return contents.orders
    }
}

extension AMQPSubscription {
    /// Nothing more will come. Gives back what nobody has taken.
    @discardableResult func end() -> [AMQPDelivery] {
        state = .cancelled
        return buffer.finish()
    }
}

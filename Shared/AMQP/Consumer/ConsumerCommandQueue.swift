internal import Synchronization

/// Commands from any thread to the consumer's thread. A batch of settlements costs one lock and one wake-up.
final class ConsumerCommandQueue: Sendable {
    struct Commands: Sendable {
        var acknowledged: [AMQPDeliveryTag] = []
        var requeued: [AMQPDeliveryTag] = []
        var rejected: [AMQPDeliveryTag] = []
        var subscribed: [AMQPSubscription] = []
        var cancelled: [(id: UInt64, completion: @Sendable () -> Void)] = []
    }

    private struct Contents {
        var commands = Commands()
        var lastID: UInt64 = 0
        var isClosed = false
    }

    private let contents = Mutex(Contents())
    private let wakeup: Wakeup

    init(wakeup: Wakeup) { self.wakeup = wakeup }

    func acknowledge(_ tags: [AMQPDeliveryTag]) {
        guard !tags.isEmpty else { return }
        contents.withLock { if !$0.isClosed { $0.commands.acknowledged += tags } }
        wakeup.signal()
    }

    func requeue(_ tags: [AMQPDeliveryTag]) {
        guard !tags.isEmpty else { return }
        contents.withLock { if !$0.isClosed { $0.commands.requeued += tags } }
        wakeup.signal()
    }

    func reject(_ tags: [AMQPDeliveryTag]) {
        guard !tags.isEmpty else { return }
        contents.withLock { if !$0.isClosed { $0.commands.rejected += tags } }
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
            if !contents.isClosed { contents.commands.subscribed.append(subscription) }
            return (subscription, contents.isClosed)
        }
        if isClosed { subscription.end() } else { wakeup.signal() }
        return subscription
    }

    func cancel(_ id: UInt64, completion: @escaping @Sendable () -> Void) {
        let isClosed = contents.withLock { contents in
            if !contents.isClosed { contents.commands.cancelled.append((id, completion)) }
            return contents.isClosed
        }
        if isClosed { completion() } else { wakeup.signal() }
    }

    func take() -> Commands { contents.withLock { Self.take(&$0) } }

    /// Takes the remaining commands and accepts no more.
    func close() -> Commands {
        contents.withLock { contents in
            contents.isClosed = true
            return Self.take(&contents)
        }
    }

    private static func take(_ contents: inout Contents) -> Commands {
        defer { contents.commands = Commands() }
        return contents.commands
    }
}

extension AMQPSubscription {
    /// Ends the subscription and returns its buffered deliveries.
    @discardableResult func end() -> [AMQPDelivery] {
        state = .cancelled
        return buffer.finish()
    }
}

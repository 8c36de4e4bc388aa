internal import Synchronization

/// Buffers deliveries between the connection's thread and the one consuming task. The prefetch limits its size, because
/// deliveries of a closed channel are dropped.
final class DeliveryBuffer: Sendable {
    private struct Contents {
        var deliveries: [AMQPDelivery] = []
        var waiter: CheckedContinuation<[AMQPDelivery]?, Never>?
        var isFinished = false
    }

    private let contents = Mutex(Contents())

    func add(_ burst: [AMQPDelivery]) {
        let waiter = contents.withLock { contents -> CheckedContinuation<[AMQPDelivery]?, Never>? in
            guard !contents.isFinished else { return nil }
            guard let waiter = contents.waiter else {
                contents.deliveries += burst
                return nil
            }
            contents.waiter = nil
            return waiter
        }
        waiter?.resume(returning: burst)
    }

    /// All deliveries since the last call; nil when finished or cancelled.
    func next() async -> [AMQPDelivery]? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let answer: [AMQPDelivery]?? = contents.withLock { contents in
                    if contents.isFinished || Task.isCancelled { return .some(nil) }
                    guard contents.deliveries.isEmpty else {
                        defer { contents.deliveries = [] }
                        return contents.deliveries
                    }
                    precondition(contents.waiter == nil, "one task takes the deliveries of a subscription")
                    contents.waiter = continuation
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            takeWaiter()?.resume(returning: nil)
        }
    }

    private func takeWaiter() -> CheckedContinuation<[AMQPDelivery]?, Never>? {
        contents.withLock { contents in
            defer { contents.waiter = nil }
            return contents.waiter
        }
    }

    /// Removes and returns the buffered deliveries.
    func removeAll() -> [AMQPDelivery] {
        contents.withLock { contents in
            defer { contents.deliveries = [] }
            return contents.deliveries
        }
    }

    /// Ends the buffer and returns the buffered deliveries.
    func finish() -> [AMQPDelivery] {
        let (left, waiter) = contents.withLock { contents in
            defer {
                contents.deliveries = []
                contents.waiter = nil
                contents.isFinished = true
            }
            return (contents.deliveries, contents.waiter)
        }
        waiter?.resume(returning: nil)
        return left
    }
}

internal import Synchronization

/// Buffers the deliveries of a subscription between the connection's thread and the one consuming task.
///
/// The prefetch limits the number of buffered deliveries: the broker sends no more until some are settled. A reopened
/// channel starts with a new prefetch, so ``removeAll()`` drops the deliveries of the closed one.
final class DeliveryBuffer: Sendable {
    private struct Contents {
        var deliveries: [AMQPDelivery] = []
        /// The consuming task, while it waits in ``next()``.
        var waiter: CheckedContinuation<[AMQPDelivery]?, Never>?
        var isFinished = false
    }

    private let contents = Mutex(Contents())

    /// Gives the deliveries to the waiting task, or buffers them. Drops them once the buffer is finished.
    func add(_ deliveries: [AMQPDelivery]) {
        let waiter = contents.withLock { contents -> CheckedContinuation<[AMQPDelivery]?, Never>? in
            guard !contents.isFinished else { return nil }
            guard let waiter = contents.waiter else {
                contents.deliveries += deliveries
                return nil
            }
            contents.waiter = nil
            return waiter
        }
        waiter?.resume(returning: deliveries)
    }

    /// Returns all deliveries since the last call, and waits for the first if there is none. Returns `nil` once the
    /// buffer is finished or the task is cancelled. For one task.
    func next() async -> [AMQPDelivery]? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                // The result of `next()`, itself optional; the outer `nil` means that the task waits.
                let result: [AMQPDelivery]?? = contents.withLock { contents in
                    if contents.isFinished || Task.isCancelled { return .some(nil) }
                    guard contents.deliveries.isEmpty else {
                        defer { contents.deliveries = [] }
                        return contents.deliveries
                    }
                    precondition(contents.waiter == nil, "one task takes the deliveries of a subscription")
                    contents.waiter = continuation
                    return nil
                }
                if let result { continuation.resume(returning: result) }
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

    /// Removes and returns the buffered deliveries. Later deliveries are buffered again.
    func removeAll() -> [AMQPDelivery] {
        contents.withLock { contents in
            defer { contents.deliveries = [] }
            return contents.deliveries
        }
    }

    /// Removes and returns the buffered deliveries, and ends the waiting of the consuming task. Later deliveries are
    /// dropped.
    func finish() -> [AMQPDelivery] {
        let (remaining, waiter) = contents.withLock { contents in
            defer {
                contents.deliveries = []
                contents.waiter = nil
                contents.isFinished = true
            }
            return (contents.deliveries, contents.waiter)
        }
        waiter?.resume(returning: nil)
        return remaining
    }
}

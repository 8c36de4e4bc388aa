internal import Synchronization

/// The subscription to one queue. Survives reconnects, and the deletion and redeclaration of the queue.
package final class AMQPSubscription: Sendable {
    /// Whether the subscription can deliver.
    package enum State: Hashable, Sendable {
        /// Not consuming; retried automatically.
        case waiting(since: ContinuousClock.Instant, lastError: AMQPError?)
        case active
        /// Ended by ``cancel()`` or by the end of the consumer.
        case cancelled
    }

    package let queue: String
    package let prefetch: UInt16
    /// Deliveries in bursts: all that arrived since the last burst, at most the prefetch.
    ///
    /// For one task. Ends when the subscription or that task is cancelled.
    package let deliveries: AsyncStream<[AMQPDelivery]>

    let id: UInt64
    /// The arguments of `basic.consume`. Called on the consumer's thread, at each attachment.
    let arguments: @Sendable () -> [String: AMQPValue]
    /// Whether it is a stream. A stream accepts acknowledgements (as credit) and no requeue.
    let isStream: Bool
    let buffer = DeliveryBuffer()
    private let consumer: ConsumerCommandQueue
    private let current = Mutex(State.waiting(since: .now, lastError: nil))

    init(
        id: UInt64, queue: String, prefetch: UInt16, isStream: Bool,
        arguments: @escaping @Sendable () -> [String: AMQPValue], consumer: ConsumerCommandQueue
    ) {
        self.id = id
        self.isStream = isStream
        self.arguments = arguments
        self.queue = queue
        self.prefetch = prefetch
        self.consumer = consumer
        let buffer = buffer
        deliveries = AsyncStream { await buffer.next() }
    }

    /// The consumer tag, unique on its channel.
    var consumerTag: String { isStream ? "\(Self.streamTag)\(id)" : "hg-\(id)" }
    /// The prefix of a stream's consumer tag. It identifies late deliveries after the subscription ended.
    static let streamTag = "hg-stream-"

    package internal(set) var state: State {
        get { current.withLock { $0 } }
        set { current.withLock { $0 = newValue } }
    }

    /// Stops consuming. Returns after the broker's last delivery; before ``AMQPConsumer/run()``, once that runs.
    ///
    /// Buffered deliveries are requeued. Settle the deliveries that you took from ``deliveries``.
    package func cancel() async {
        await withCheckedContinuation { continuation in
            consumer.cancel(id) { continuation.resume() }
        }
    }
}

internal import Synchronization

/// One queue being consumed, through reconnects and through the queue's own deletion and return.
package final class AMQPSubscription: Sendable {
    /// Whether deliveries can come.
    package enum State: Hashable, Sendable {
        /// Not yet, or not any more; tries go on by themselves.
        case waiting(since: ContinuousClock.Instant, lastError: AMQPError?)
        case active
        /// For good.
        case cancelled
    }

    package let queue: String
    package let prefetch: UInt16
    /// Deliveries as they come, in bursts: whatever arrived since the last one was taken, at most the prefetch.
    ///
    /// For one task. Ends when the subscription is cancelled, or when that task is.
    package let deliveries: AsyncStream<[AMQPDelivery]>

    let id: UInt64
    /// What the queue is consumed with; asked each time that it is, on the consumer's thread.
    let arguments: @Sendable () -> [String: AMQPValue]
    /// Whether it is a stream, which takes acknowledgements for credit and nothing back.
    let isStream: Bool
    let buffer = DeliveryBuffer()
    private let consumer: ConsumerInbox
    private let current = Mutex(State.waiting(since: .now, lastError: nil))

    init(
        id: UInt64, queue: String, prefetch: UInt16, isStream: Bool,
        arguments: @escaping @Sendable () -> [String: AMQPValue], consumer: ConsumerInbox
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

    /// What the broker knows this consumer by: unique on its channel.
    var consumerTag: String { isStream ? "\(Self.streamTag)\(id)" : "hg-\(id)" }
    /// How the tag of a stream's consumer begins: it is still known when the subscription is forgotten.
    static let streamTag = "hg-stream-"

    package internal(set) var state: State {
        get { current.withLock { $0 } }
        set { current.withLock { $0 = newValue } }
    }

    /// Stops consuming. Returns when the broker sends no more; with a consumer that does not run yet, once it does.
    ///
    /// What was delivered and not taken from ``deliveries`` goes back to the queue; what was taken is still to be
    /// acknowledged or requeued by whoever took it.
    package func cancel() async {
        await withCheckedContinuation { continuation in
            consumer.cancel(id) { continuation.resume() }
        }
    }
}

package import AMQP
package import Messaging
package import PushProtocol
internal import Synchronization

/// A bus without a broker, for tests of stages. Covered by the bus conformance suite.
///
/// Has no time: retries wait until `expireRetries` is called. Usable from any task.
package final class InMemoryBus: MessageBus {
    private struct State {
        var broker: BrokerModel
        var subscribers: [Int: (queue: String, continuation: AsyncStream<[AMQPDelivery]>.Continuation)] = [:]
        var scripted: [String: [AMQPConfirmation]] = [:]
        var published: [AMQPMessage] = []
        var isRefused: @Sendable (AMQPMessage) -> Bool = { _ in false }
        var refusals = 0
        var isHoldingConfirms = false
        var isClosed = false
    }

    private let state: Mutex<State>

    package init(topology: Topology) { state = Mutex(State(broker: BrokerModel(topology))) }

    package convenience init(apps: [AppID]) { self.init(topology: .withoutPerAppQueues(apps: apps)) }

    package func subscribe(queue: String, prefetch: UInt16) -> BusSubscription {
        let (deliveries, continuation) = AsyncStream<[AMQPDelivery]>.makeStream()
        let id = state.withLock { state -> Int? in
            guard !state.isClosed else { return nil }
            let id = state.broker.addConsumer(to: queue, prefetch: prefetch)
            state.subscribers[id] = (queue, continuation)
            return id
        }
        guard let id else {
            continuation.finish()
            return BusSubscription(deliveries: deliveries) {}
        }
        deliver()
        return BusSubscription(deliveries: deliveries) { [self] in unsubscribe(id) }
    }

    private func unsubscribe(_ id: Int) {
        state.withLock { state in
            state.broker.removeConsumer(id)
            state.subscribers.removeValue(forKey: id)?.continuation.finish()
        }
    }

    package func acknowledge(_ tags: [AMQPDeliveryTag]) {
        state.withLock { $0.broker.acknowledge(tags) }
        deliver()
    }

    package func requeue(_ tags: [AMQPDeliveryTag]) {
        state.withLock { $0.broker.requeue(tags) }
        deliver()
    }

    package func reject(_ tags: [AMQPDeliveryTag]) {
        state.withLock { $0.broker.reject(tags) }
        deliver()
    }

    package func publish(_ messages: [AMQPMessage]) async throws(AMQPError) -> [AMQPConfirmation] {
        let answers = state.withLock { state -> [AMQPConfirmation]? in
            guard !state.isClosed else { return nil }
            return messages.map { message in
                if state.isRefused(message) {
                    state.refusals += 1
                    return .returned(code: 406, text: "PRECONDITION_FAILED - message size is larger than configured")
                }
                if let answer = state.scripted[message.exchange]?.first {
                    state.scripted[message.exchange]?.removeFirst()
                    if answer != .confirmed { return answer }
                }
                let answer = state.broker.publish(message)
                if answer == .confirmed { state.published.append(message) }
                return answer
            }
        }
        guard let answers else { throw AMQPError(.closed, operation: "publish", detail: "the bus is closed") }
        deliver()
        do {
            try await eventually("the confirms", within: .seconds(60)) { !state.withLock(\.isHoldingConfirms) }
        } catch {
            throw AMQPError(.cancelled, operation: "publish", detail: "\(error)")
        }
        return answers
    }

    /// Delivers ready messages. Yields under the lock to keep each queue's order.
    private func deliver() {
        state.withLock { state in
            for (consumer, deliveries) in state.broker.deliver() {
                state.subscribers[consumer]?.continuation.yield(deliveries)
            }
        }
    }
}

// Test control of the broker.
extension InMemoryBus {
    /// Publishes one message as an external publisher.
    @discardableResult
    package func send(
        to exchange: String, _ routingKey: String, _ body: [UInt8], properties: AMQPProperties = .init()
    ) -> AMQPConfirmation {
        defer { deliver() }
        return state.withLock {
            $0.broker.publish(
                AMQPMessage(exchange: exchange, routingKey: routingKey, properties: properties, body: body))
        }
    }

    /// Sets the answers to the next messages to `exchange`, in order. Only messages answered `confirmed` are routed.
    package func answer(publishesTo exchange: ExchangeName, with answers: [AMQPConfirmation]) {
        state.withLock { $0.scripted[exchange.name, default: []] += answers }
    }

    /// Answers these messages with 406 from now on, as messages above the broker's `max_message_size` are.
    package func refuse(_ isRefused: @escaping @Sendable (AMQPMessage) -> Bool) {
        state.withLock { $0.isRefused = isRefused }
    }

    /// The number of publishes refused in this way.
    package var refusals: Int { state.withLock { $0.refusals } }

    /// While held, messages are routed without a confirm.
    package func holdConfirms(_ hold: Bool) { state.withLock { $0.isHoldingConfirms = hold } }

    /// Returns all messages from a retry level.
    package func expireRetries(_ level: RetryLevel) {
        state.withLock { $0.broker.expire(level.queueName) }
        deliver()
    }

    /// Returns all messages from every retry level. One that fails at once and enters the next level stays there.
    package func expireRetries() {
        state.withLock { state in
            for level in RetryLevel.allCases { state.broker.expire(level.queueName) }
        }
        deliver()
    }

    /// Simulates a reconnect: all unsettled messages are redelivered.
    package func loseConnection() {
        state.withLock { $0.broker.loseConnection() }
        deliver()
    }

    /// Simulates a crash of the consuming process: its consumers end, its unsettled messages are redelivered, and its
    /// later settlements are ignored.
    package func abandonConsumers() {
        state.withLock { state in
            for id in state.subscribers.keys { state.broker.removeConsumer(id) }
            state.subscribers = [:]
            state.broker.loseConnection()
        }
    }

    package func bind(_ binding: Topology.Binding) { state.withLock { $0.broker.bind(binding) } }
    package func unbind(_ binding: Topology.Binding) { state.withLock { $0.broker.unbind(binding) } }

    /// Ends every subscription. Later publishes throw.
    package func close() {
        let all = state.withLock { state in
            state.isClosed = true
            defer { state.subscribers = [:] }
            return state.subscribers.values.map(\.continuation)
        }
        for continuation in all { continuation.finish() }
    }
}

// State for assertions.
extension InMemoryBus {
    /// The ready messages in `queue`.
    package func messages(in queue: String) -> [AMQPMessage] {
        state.withLock { $0.broker.queues[queue]?.ready.map(\.message) ?? [] }
    }

    /// Removes and returns the first ready message of `queue`.
    package func takeFirst(from queue: String) -> AMQPMessage? { state.withLock { $0.broker.takeFirst(from: queue) } }

    /// The number of unsettled deliveries of `queue`.
    package func unsettled(in queue: String) -> Int { state.withLock { $0.broker.unsettled(in: queue) } }

    /// Whether no message of `queue` is ready or unsettled, both at one moment.
    package func isSettled(_ queue: String) -> Bool {
        state.withLock { $0.broker.queues[queue]?.ready.isEmpty != false && $0.broker.unsettled(in: queue) == 0 }
    }

    /// The prefetch of each consumer of `queue`.
    package func consumers(of queue: String) -> [Int] {
        state.withLock { $0.broker.queues[queue]?.consumers.map(\.prefetch) ?? [] }
    }

    /// All confirmed messages from stages, in order.
    package var published: [AMQPMessage] { state.withLock { $0.published } }
}

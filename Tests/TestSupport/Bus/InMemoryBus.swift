package import AMQP
package import Messaging
package import PushProtocol
internal import Synchronization

/// The bus without a broker, for tests of stages. Held to the real one's behaviour by the conformance suite.
///
/// Time does not pass in it: retries wait until `expireRetries` is called. Safe from any task.
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

    package convenience init(apps: [AppID]) { self.init(topology: .undivided(apps: apps)) }

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
        lend()
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
        lend()
    }

    package func requeue(_ tags: [AMQPDeliveryTag]) {
        state.withLock { $0.broker.requeue(tags) }
        lend()
    }

    package func reject(_ tags: [AMQPDeliveryTag]) {
        state.withLock { $0.broker.reject(tags) }
        lend()
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
        lend()
        do {
            try await eventually("the confirms", within: .seconds(60)) { !state.withLock(\.isHoldingConfirms) }
        } catch {
            throw AMQPError(.cancelled, operation: "publish", detail: "\(error)")
        }
        return answers
    }

    /// Hands out what may be lent. Yielding under the lock keeps each queue's order.
    private func lend() {
        state.withLock { state in
            for (consumer, deliveries) in state.broker.lend() {
                state.subscribers[consumer]?.continuation.yield(deliveries)
            }
        }
    }
}

// What a test does to the broker.
extension InMemoryBus {
    /// Publishes one message as an upstream would.
    @discardableResult
    package func send(
        to exchange: String, _ routingKey: String, _ body: [UInt8], properties: AMQPProperties = .init()
    ) -> AMQPConfirmation {
        defer { lend() }
        return state.withLock {
            $0.broker.publish(
                AMQPMessage(exchange: exchange, routingKey: routingKey, properties: properties, body: body))
        }
    }

    /// The answers to the next messages to `exchange`, in order. Only what is answered `confirmed` is routed.
    package func answer(publishesTo exchange: ExchangeName, with answers: [AMQPConfirmation]) {
        state.withLock { $0.scripted[exchange.name, default: []] += answers }
    }

    /// From now on these messages are answered with 406, as messages above the broker's `max_message_size` are.
    package func refuse(_ isRefused: @escaping @Sendable (AMQPMessage) -> Bool) {
        state.withLock { $0.isRefused = isRefused }
    }

    /// How many publishes were refused so.
    package var refusals: Int { state.withLock { $0.refusals } }

    /// While held, publishes are routed but no confirm is given.
    package func holdConfirms(_ hold: Bool) { state.withLock { $0.isHoldingConfirms = hold } }

    /// Lets a retry level's time pass for all that waits in it.
    package func expireRetries(_ level: RetryLevel) {
        state.withLock { $0.broker.expire(level.queueName) }
        lend()
    }

    /// Lets every retry level's time pass.
    package func expireRetries() {
        for level in RetryLevel.allCases { expireRetries(level) }
    }

    /// The connection breaks and is made again: all that is unsettled is delivered again.
    package func loseConnection() {
        state.withLock { $0.broker.loseConnection() }
        lend()
    }

    /// The consuming process dies: its consumers are gone, what it had in hand is delivered again, and whatever it still
    /// says about that is ignored.
    package func abandonConsumers() {
        state.withLock { state in
            for id in state.subscribers.keys { state.broker.removeConsumer(id) }
            state.subscribers = [:]
            state.broker.loseConnection()
        }
    }

    package func bind(_ binding: Topology.Binding) { state.withLock { $0.broker.bind(binding) } }
    package func unbind(_ binding: Topology.Binding) { state.withLock { $0.broker.unbind(binding) } }

    /// Ends every subscription; publishing throws from now on.
    package func close() {
        let all = state.withLock { state in
            state.isClosed = true
            defer { state.subscribers = [:] }
            return state.subscribers.values.map(\.continuation)
        }
        for continuation in all { continuation.finish() }
    }
}

// What a test sees.
extension InMemoryBus {
    /// The messages in `queue` that are not lent to anyone.
    package func messages(in queue: String) -> [AMQPMessage] {
        state.withLock { $0.broker.queues[queue]?.ready.map(\.message) ?? [] }
    }

    /// Takes the first message of `queue` away.
    package func takeFirst(from queue: String) -> AMQPMessage? { state.withLock { $0.broker.takeFirst(from: queue) } }

    /// How many messages of `queue` are lent and not settled.
    package func unsettled(in queue: String) -> Int { state.withLock { $0.broker.unsettled(in: queue) } }

    /// The prefetch of each consumer of `queue`.
    package func consumers(of queue: String) -> [Int] {
        state.withLock { $0.broker.queues[queue]?.consumers.map(\.prefetch) ?? [] }
    }

    /// Everything that stages published and the broker took, in order.
    package var published: [AMQPMessage] { state.withLock { $0.published } }
}

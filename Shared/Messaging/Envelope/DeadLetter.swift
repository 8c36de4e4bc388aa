package import AMQP
package import PushProtocol

/// What a stage, or the broker, gave up on, as it lies in a dead-letter queue.
///
/// Says nothing of the body, which may hold tokens and what people write to each other.
package struct DeadLetter: Sendable {
    /// The queue whose stage gave up.
    package let queue: WorkQueue
    private let delivery: AMQPDelivery

    package init(_ delivery: AMQPDelivery, of queue: WorkQueue) {
        self.queue = queue
        self.delivery = delivery
    }

    /// The name under which it came, where that is not the queue's own: a stage wrote it that may not write for this queue,
    /// by a `CC` header. `nil` for a letter of the queue's own stage, or of the broker. A foreign letter is not replayed.
    package var foreignKey: String? {
        if let marked = text(HeaderName.foreignKey) { return marked }
        let isOurs = delivery.exchange == ExchangeName.dead.name && delivery.routingKey == queue.name
        return isOurs ? nil : delivery.routingKey
    }

    package var id: String? { delivery.properties.messageID }
    /// The id of the domain event that began it all, where the message says so.
    package var correlation: String? { delivery.properties.correlationID }
    /// The routing key that it was first published with.
    package var routingKey: String? { text(HeaderName.routingKey) ?? death?.routingKey }
    /// How often it was tried; `nil` where the broker gave up, which counts deliveries.
    package var attempt: Int64? { header(HeaderName.attempt)?.int }
    /// A stable word for why: a stage's own, or the broker's such as `delivery_limit`.
    package var reason: String { text(HeaderName.reason) ?? text("x-first-death-reason") ?? "unknown" }
    /// A sentence for a person; `nil` where the broker gave up.
    package var detail: String? { text(HeaderName.detail) }
    package var failedAt: Timestamp? {
        header(HeaderName.failedAt)?.int.map(Timestamp.init(milliseconds:)) ?? death?.at
    }

    /// The copy that is handled as if it came for the first time: its attempts, and the time since it was first seen,
    /// which would have it given up at once, begin anew.
    package var again: AMQPMessage {
        var copy = copy(to: .return)
        copy.properties.dropWhatIsNotOurs()
        for name in [
            HeaderName.attempt, HeaderName.firstSeen, HeaderName.reason, HeaderName.detail, HeaderName.queue,
            HeaderName.service, HeaderName.failedAt, HeaderName.failedAlone, HeaderName.redelivered,
            HeaderName.foreignKey,
        ] {
            copy.properties.headers[name] = nil
        }
        // A replay must not look younger than it is. Senders refuse a push that is older than the known revocations.
        if copy.properties.timestamp == nil { copy.properties.timestamp = failedAt?.seconds }
        // Of what the broker gave up on only the broker knows where it came from.
        if let death {
            copy.properties.headers[HeaderName.exchange] = header(HeaderName.exchange) ?? .text(death.exchange)
            copy.properties.headers[HeaderName.routingKey] = header(HeaderName.routingKey) ?? .text(death.routingKey)
        }
        return copy
    }

    /// The copy that takes its place in the queue it lies in. It leaves when the letter would have left: the broker counts
    /// from the moment in which it takes a message in, and would begin anew each time somebody looks.
    package func kept(at now: Timestamp) -> AMQPMessage {
        var copy = copy(to: .dead)
        copy.properties.headers[HeaderName.foreignKey] = foreignKey.map(AMQPValue.text)
        if let failedAt {
            let left = failedAt + Topology.deadLettersKept(in: queue) - now
            copy.properties.expiration = String(max(0, left.wholeMilliseconds))
        }
        return copy
    }

    private func copy(to exchange: ExchangeName) -> AMQPMessage {
        AMQPMessage(
            exchange: exchange.name, routingKey: queue.name, properties: delivery.properties.ofCopy,
            body: delivery.body)
    }

    private func header(_ name: String) -> AMQPValue? { delivery.properties.headers[name] }
    private func text(_ name: String) -> String? { header(name)?.text }

    /// How it came to its queue, by what the broker noted when it gave up
    /// (https://www.rabbitmq.com/docs/dlx#effects: one table a queue and reason, the latest first).
    private var death: (exchange: String, routingKey: String, at: Timestamp?)? {
        guard case .array(let deaths)? = header("x-death") else { return nil }
        for case .table(let death) in deaths where death["queue"]?.text == queue.name {
            guard let exchange = death["exchange"]?.text, case .array(let keys)? = death["routing-keys"],
                let key = keys.first?.text
            else { continue }
            guard case .timestamp(let seconds)? = death["time"] else { return (exchange, key, nil) }
            return (exchange, key, Timestamp(milliseconds: 0) + .seconds(seconds))
        }
        return nil
    }
}

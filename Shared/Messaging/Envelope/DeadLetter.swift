package import AMQP
package import PushProtocol

/// A message in a dead-letter queue, put there by a stage or by the broker.
///
/// Its description contains nothing of the body, which may hold device tokens and user content.
package struct DeadLetter: Sendable {
    /// The work queue that the message failed in.
    package let queue: WorkQueue
    private let delivery: AMQPDelivery

    package init(_ delivery: AMQPDelivery, of queue: WorkQueue) {
        self.queue = queue
        self.delivery = delivery
    }

    /// The routing key of the dead letter, when it is not the queue's name: another stage routed it here with a `CC`
    /// header. `nil` for a dead letter from the queue's own stage or from the broker. Do not replay a foreign dead
    /// letter.
    package var foreignRoutingKey: String? {
        if let marked = text(HeaderName.foreignRoutingKey) { return marked }
        let isOurs = delivery.exchange == ExchangeName.dead.name && delivery.routingKey == queue.name
        return isOurs ? nil : delivery.routingKey
    }

    package var id: String? { delivery.properties.messageID }
    /// The id of the domain event that caused the message, if known.
    package var correlation: String? { delivery.properties.correlationID }
    /// The routing key of the original publish.
    package var routingKey: String? { text(HeaderName.routingKey) ?? death?.routingKey }
    /// The number of attempts; `nil` for a message dead-lettered by the broker, which counts deliveries.
    package var attempt: Int64? { header(HeaderName.attempt)?.int }
    /// The reason code: from the stage, or the broker's reason such as `delivery_limit`.
    package var reason: String { text(HeaderName.reason) ?? text("x-first-death-reason") ?? "unknown" }
    /// A sentence for operators; `nil` for a message dead-lettered by the broker.
    package var detail: String? { text(HeaderName.detail) }
    package var failedAt: Timestamp? {
        header(HeaderName.failedAt)?.int.map(Timestamp.init(milliseconds:)) ?? death?.at
    }

    /// The copy for a replay, handled like a new message. Attempts and first-seen time start over.
    package var replayCopy: AMQPMessage {
        var copy = copy(to: .return)
        copy.properties.removeBrokerHeaders()
        for name in [
            HeaderName.attempt, HeaderName.firstSeen, HeaderName.reason, HeaderName.detail, HeaderName.queue,
            HeaderName.service, HeaderName.failedAt, HeaderName.failedAlone, HeaderName.redelivered,
            HeaderName.foreignRoutingKey,
        ] {
            copy.properties.headers[name] = nil
        }
        // A replay keeps the original age, because senders refuse a push older than the known revocations.
        if copy.properties.timestamp == nil { copy.properties.timestamp = failedAt?.seconds }
        // For a message dead-lettered by the broker, `x-death` is the only source of the original routing.
        if let death {
            copy.properties.headers[HeaderName.exchange] = header(HeaderName.exchange) ?? .text(death.exchange)
            copy.properties.headers[HeaderName.routingKey] = header(HeaderName.routingKey) ?? .text(death.routingKey)
        }
        return copy
    }

    /// The copy that replaces the dead letter in the same queue. It expires when the original would have; the broker
    /// counts the TTL from each publish.
    package func keptCopy(at now: Timestamp) -> AMQPMessage {
        var copy = copy(to: .dead)
        copy.properties.headers[HeaderName.foreignRoutingKey] = foreignRoutingKey.map(AMQPValue.text)
        if let failedAt {
            let left = failedAt + Topology.deadLetterRetention(in: queue) - now
            copy.properties.expiration = String(max(0, left.wholeMilliseconds))
        }
        return copy
    }

    private func copy(to exchange: ExchangeName) -> AMQPMessage {
        AMQPMessage(
            exchange: exchange.name, routingKey: queue.name, properties: delivery.properties.forRepublishing,
            body: delivery.body)
    }

    private func header(_ name: String) -> AMQPValue? { delivery.properties.headers[name] }
    private func text(_ name: String) -> String? { header(name)?.text }

    /// The broker's newest `x-death` entry of this queue: exchange, routing key and time
    /// (https://www.rabbitmq.com/docs/dlx#effects).
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

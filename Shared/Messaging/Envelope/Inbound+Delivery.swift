internal import AMQP
internal import PushProtocol

extension Inbound {
    /// Reads a delivery.
    ///
    /// Heliograph's headers are trusted only on messages from the exchange `return` with this queue's name as routing
    /// key. Topic permissions restrict each stage to its own queue names there. Any other routing key was added by a
    /// `CC` header, whose keys RabbitMQ checks only from version 4 on.
    init(_ delivery: AMQPDelivery, queue: WorkQueue, now: Timestamp) {
        guard delivery.exchange == ExchangeName.return.name, delivery.routingKey == queue.name else {
            self.init(delivery, queue: queue, attempt: 1, firstSeen: now)
            return
        }
        let headers = delivery.properties.headers
        self.init(
            delivery, queue: queue,
            origin: Origin(
                exchange: headers[HeaderName.exchange]?.text ?? delivery.exchange,
                routingKey: headers[HeaderName.routingKey]?.text ?? delivery.routingKey),
            attempt: Inbound.attempt(in: headers),
            firstSeen: headers[HeaderName.firstSeen]?.int.map(Timestamp.init(milliseconds:)) ?? now)
    }

    /// Whether another stage routed the message here through its own retries. Such a message is dead-lettered.
    var isMisrouted: Bool {
        delivery.exchange == ExchangeName.return.name && delivery.routingKey != queue.name
    }

    private static func attempt(in headers: [String: AMQPValue]) -> Int {
        guard let attempt = headers[HeaderName.attempt]?.int else { return 1 }
        return Int(clamping: max(attempt, 1))
    }
}

extension AMQPDelivery {
    /// The number of returns to the queue, from `x-delivery-count` of quorum queues; otherwise 0.
    var deliveryCount: Int64 { redelivered ? properties.headers["x-delivery-count"]?.int ?? 0 : 0 }

    /// Whether the handler failed on this message alone at the last attempt.
    var failedAlone: Bool {
        exchange == ExchangeName.return.name && properties.headers[HeaderName.failedAlone] != nil
    }

    /// Whether the message was redelivered before it moved to a retry level. The broker does not know this of the copy.
    var wasRedeliveredBefore: Bool {
        exchange == ExchangeName.return.name && properties.headers[HeaderName.redelivered] != nil
    }
}

internal import AMQP
internal import PushProtocol

extension Inbound {
    /// Reads a delivery of the bus.
    ///
    /// Headers of ours count only on a message that came through the exchange `return` under the name of this queue. A
    /// topic permission holds each stage to the names of its own queues there. Under any other name the message was put
    /// into this queue by a `CC` header, which the broker does not check before version 4.
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

    /// Whether another stage put the message into this queue by way of its own retries. No stage handles such a message.
    var isSmuggled: Bool {
        delivery.exchange == ExchangeName.return.name && delivery.routingKey != queue.name
    }

    private static func attempt(in headers: [String: AMQPValue]) -> Int {
        guard let attempt = headers[HeaderName.attempt]?.int else { return 1 }
        return Int(clamping: max(attempt, 1))
    }
}

extension AMQPDelivery {
    /// How often the broker has had this message back from a consumer, where it says so (quorum queues do).
    var deliveryCount: Int64 { redelivered ? properties.headers["x-delivery-count"]?.int ?? 0 : 0 }

    /// Whether the handler failed about this message when it was alone, the last time that it was here.
    var failedAlone: Bool {
        exchange == ExchangeName.return.name && properties.headers[HeaderName.failedAlone] != nil
    }

    /// Whether it was delivered before it was set aside (``Redirection``), which the broker does not know any more.
    var wasRedeliveredBefore: Bool {
        exchange == ExchangeName.return.name && properties.headers[HeaderName.redelivered] != nil
    }
}

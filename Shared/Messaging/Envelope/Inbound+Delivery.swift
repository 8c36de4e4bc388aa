internal import AMQP
internal import PushProtocol

extension Inbound {
    /// Reads what the bus delivered.
    ///
    /// Our own headers are believed only on what comes through the exchange `return`, to which no one but the broker
    /// and an operator may publish: a publisher who could name another routing key could speak for another app.
    init(_ delivery: AMQPDelivery, queue: WorkQueue, now: Timestamp) {
        guard delivery.exchange == ExchangeName.return.name else {
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

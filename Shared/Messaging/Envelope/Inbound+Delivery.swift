internal import AMQP
internal import PushProtocol

extension Inbound {
    /// Reads what the bus delivered.
    ///
    /// Our own headers are believed only on what comes through the exchange `return`, to which no one but the broker
    /// and an operator may publish: a publisher who could name another routing key could speak for another app.
    convenience init(_ delivery: AMQPDelivery, queue: WorkQueue, now: Timestamp) {
        let headers = delivery.properties.headers
        let returned = delivery.exchange == ExchangeName.return.name
        self.init(
            queue: queue,
            exchange: (returned ? headers[HeaderName.exchange]?.text : nil) ?? delivery.exchange,
            routingKey: (returned ? headers[HeaderName.routingKey]?.text : nil) ?? delivery.routingKey,
            contentType: delivery.properties.contentType, messageID: delivery.properties.messageID,
            type: delivery.properties.type, properties: headers, body: delivery.body,
            attempt: returned ? Inbound.attempt(in: headers) : 1, redelivered: delivery.redelivered,
            firstSeen: (returned ? headers[HeaderName.firstSeen]?.int : nil).map(Timestamp.init(milliseconds:)) ?? now)
    }

    private static func attempt(in headers: [String: AMQPValue]) -> Int {
        guard let attempt = headers[HeaderName.attempt]?.int else { return 1 }
        return Int(clamping: max(attempt, 1))
    }
}

extension AMQPDelivery {
    /// How often the broker has had this message back from a consumer, where it says so (quorum queues do).
    var deliveryCount: Int64 { properties.headers["x-delivery-count"]?.int ?? 0 }
}

/// A message to publish.
package struct AMQPMessage: Hashable, Sendable {
    /// Empty for the default exchange, which routes by queue name (AMQP 0-9-1 §3.1.3.1).
    package var exchange: String
    package var routingKey: String
    package var properties: AMQPProperties
    package var body: [UInt8]

    package init(exchange: String, routingKey: String, properties: AMQPProperties = .init(), body: [UInt8]) {
        self.exchange = exchange
        self.routingKey = routingKey
        self.properties = properties
        self.body = body
    }
}

/// The broker's answer to a publish.
package enum AMQPConfirmation: Hashable, Sendable {
    /// The broker is responsible for the message. A quorum queue has written it to a majority of its members (RabbitMQ:
    /// Publisher Confirms).
    case confirmed
    /// The broker could not accept it: a full queue with `reject-publish`, or an internal error. You can publish it
    /// again.
    case nacked
    /// Refused by the broker, or by this module before sending. The message is in no queue. `code` and `text` are
    /// AMQP's reply code and text: 312 NO_ROUTE, 404 no such exchange, 403 no permission, 501 and 502 not encodable, …
    case returned(code: Int, text: String)
}

/// Identifies one delivery for its settlement. Valid while its channel is open.
package struct AMQPDeliveryTag: Hashable, Sendable {
    /// Counts the connections of the consumer. The broker's delivery tags start over on every channel.
    package let generation: UInt64
    package let value: UInt64

    package init(generation: UInt64, value: UInt64) {
        self.generation = generation
        self.value = value
    }
}

/// A delivered message. A class, because it is passed on many times and has many fields.
package final class AMQPDelivery: Sendable {
    package let queue: String
    package let tag: AMQPDeliveryTag
    /// Whether the broker delivered it before (`redelivered`).
    package let redelivered: Bool
    package let exchange: String
    package let routingKey: String
    package let properties: AMQPProperties
    package let body: [UInt8]
    /// The size of a body that was dropped because it exceeds ``AMQPConsumer/maximumBody``; otherwise 0.
    package let omittedBytes: Int

    package init(
        queue: String, tag: AMQPDeliveryTag, redelivered: Bool, exchange: String, routingKey: String,
        properties: AMQPProperties, body: [UInt8], omittedBytes: Int = 0
    ) {
        self.omittedBytes = omittedBytes
        self.queue = queue
        self.tag = tag
        self.redelivered = redelivered
        self.exchange = exchange
        self.routingKey = routingKey
        self.properties = properties
        self.body = body
    }
}

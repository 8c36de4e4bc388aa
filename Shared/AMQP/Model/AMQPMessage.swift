/// A message to publish.
package struct AMQPMessage: Hashable, Sendable {
    /// Empty for the default exchange, which routes by queue name.
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

/// What became of a published message.
package enum AMQPConfirmation: Hashable, Sendable {
    /// The broker has it safely: on a quorum queue, on the disks of a majority.
    case confirmed
    /// The broker could not take it (a full queue that rejects, an internal error). It may be published again later.
    case nacked
    /// The broker, or this room before sending, refused it: it is in no queue. `code` and `text` are AMQP's reply code
    /// and text: 312 NO_ROUTE, 404 no such exchange, 403 no permission, 501 and 502 not encodable, …
    case returned(code: Int, text: String)
}

/// Names one delivery for settling it, for as long as the channel that delivered it lives.
package struct AMQPDeliveryTag: Hashable, Sendable {
    /// Which connection, in order, delivered it. Broker tags start again with every channel.
    package let generation: UInt64
    package let value: UInt64

    package init(generation: UInt64, value: UInt64) {
        self.generation = generation
        self.value = value
    }
}

/// A message that was delivered. A class, since it is handed on many times before it is settled, and has many parts.
package final class AMQPDelivery: Sendable {
    package let queue: String
    package let tag: AMQPDeliveryTag
    /// Whether the broker may have delivered it before.
    package let redelivered: Bool
    package let exchange: String
    package let routingKey: String
    package let properties: AMQPProperties
    package let body: [UInt8]
    /// The size of the body where it was dropped, since it is longer than ``AMQPConsumer/maximumBody``; otherwise 0.
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

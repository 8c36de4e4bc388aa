internal import CRabbitMQ

// Publishing and consuming on the working channel.

extension Connection {
    /// Enables publisher confirms. Sequence numbers start at 1.
    mutating func selectConfirms() throws(AMQPError) {
        _ = amqp_confirm_select(state, Self.channel)
        try check(amqp_get_rpc_reply(state), "ask for publisher confirms")
    }

    /// Sends one message as mandatory. Returns when the kernel has accepted it.
    mutating func publish(_ message: AMQPMessage, messageID: String?) throws(AMQPError) {
        arena.reset()
        let exchange = arena.bytes(message.exchange)
        let routingKey = arena.bytes(message.routingKey)
        var properties = arena.properties(message.properties, messageID: messageID)
        let state = state
        let status = message.body.withUnsafeBytes { body in
            amqp_basic_publish(
                state, Self.channel, exchange, routingKey, 1, 0, &properties,
                amqp_bytes_t(len: body.count, bytes: UnsafeMutableRawPointer(mutating: body.baseAddress)))
        }
        try check(status, "publish to “\(message.exchange)”")
    }

    mutating func consume(
        _ queue: String, consumerTag: String, prefetch: UInt16, arguments: [String: AMQPValue] = [:]
    ) throws(AMQPError) {
        _ = amqp_basic_qos(state, Self.channel, 0, prefetch, 0)
        try check(amqp_get_rpc_reply(state), "set the prefetch for \(queue)")
        arena.reset()
        let name = arena.bytes(queue)
        let tag = arena.bytes(consumerTag)
        _ = amqp_basic_consume(state, Self.channel, name, tag, 0, 0, 0, arena.table(arguments))
        try check(amqp_get_rpc_reply(state), "consume \(queue)")
    }

    mutating func cancel(consumerTag: String) throws(AMQPError) {
        arena.reset()
        let tag = arena.bytes(consumerTag)
        _ = amqp_basic_cancel(state, Self.channel, tag)
        try check(amqp_get_rpc_reply(state), "cancel a consumer")
    }

    func send(_ settlement: AckTracker.Settlement) throws(AMQPError) {
        switch settlement {
        case .ack(let tag, let multiple):
            try check(amqp_basic_ack(state, Self.channel, tag, multiple ? 1 : 0), "acknowledge")
        case .requeue(let tag):
            try check(amqp_basic_nack(state, Self.channel, tag, 0, 1), "requeue")
        case .reject(let tag):
            try check(amqp_basic_reject(state, Self.channel, tag, 0), "reject")
        }
    }

    /// Takes one message off a queue and waits for its body; nil when the queue is empty.
    ///
    /// - Parameter acknowledging: Whether the broker acknowledges it on delivery (`no-ack`).
    mutating func get(
        _ queue: String, acknowledging: Bool = true, generation: UInt64 = 0
    ) throws(AMQPError) -> AMQPDelivery? {
        arena.reset()
        let reply = amqp_basic_get(state, Self.channel, arena.bytes(queue), acknowledging ? 1 : 0)
        try check(reply, "get from \(queue)")
        guard reply.reply.id == AMQP_BASIC_GET_OK_METHOD else {
            amqp_maybe_release_buffers_on_channel(state, Self.channel)
            return nil
        }
        let raw = reply.reply.decoded.assumingMemoryBound(to: amqp_basic_get_ok_t.self).pointee
        let (exchange, routingKey) = (String(raw.exchange), String(raw.routing_key))
        var message = amqp_message_t()
        try check(amqp_read_message(state, Self.channel, &message, 0), "read a message of \(queue)")
        defer {
            amqp_destroy_message(&message)
            amqp_maybe_release_buffers_on_channel(state, Self.channel)
        }
        return AMQPDelivery(
            queue: queue, tag: AMQPDeliveryTag(generation: generation, value: raw.delivery_tag),
            redelivered: raw.redelivered != 0, exchange: exchange, routingKey: routingKey,
            properties: AMQPProperties(message.properties), body: [UInt8](message.body))
    }
}

internal import CRabbitMQ

extension Connection {
    /// Whether an exchange exists. Uses the probe channel, because a 404 closes the channel.
    mutating func exchangeExists(_ name: String) throws(AMQPError) -> Bool {
        if name.isEmpty { return true }
        return try probe { (connection) throws(AMQPError) -> Bool in
            connection.arena.reset()
            let exchange = connection.arena.bytes(name)
            _ = amqp_exchange_declare(
                connection.state, Self.probe, exchange, amqp_bytes_t(), 1, 1, 0, 0, amqp_table_t())
            try connection.check(
                amqp_get_rpc_reply(connection.state), on: Self.probe, "look for the exchange \(name)")
            return true
        } ?? false
    }

    /// The number of ready messages and of consumers of a queue; nil when the queue does not exist.
    mutating func queueStatus(_ name: String) throws(AMQPError) -> (messages: Int, consumers: Int)? {
        try probe { (connection) throws(AMQPError) in
            connection.arena.reset()
            let answer = amqp_queue_declare(
                connection.state, Self.probe, connection.arena.bytes(name), 1, 1, 0, 0, amqp_table_t())?.pointee
            try connection.check(amqp_get_rpc_reply(connection.state), on: Self.probe, "look for the queue \(name)")
            return (Int(answer?.message_count ?? 0), Int(answer?.consumer_count ?? 0))
        }
    }

    /// Runs `ask` on the probe channel; nil when the broker closes it with 404.
    private mutating func probe<R>(
        _ ask: (inout Connection) throws(AMQPError) -> R
    ) throws(AMQPError) -> R? {
        if !probeIsOpen {
            try openChannel(Self.probe)
            probeIsOpen = true
        }
        do throws(AMQPError) {
            let answer = try ask(&self)
            amqp_maybe_release_buffers_on_channel(state, Self.probe)
            return answer
        } catch {
            guard case .channelClosed(let code) = error.code else { throw error }
            probeIsOpen = false
            amqp_maybe_release_buffers_on_channel(state, Self.probe)
            guard code == 404 else { throw error }
            return nil
        }
    }

    // MARK: - Declarations, on the working channel

    mutating func declareExchange(
        _ name: String, kind: String, arguments: [String: AMQPValue]
    ) throws(AMQPError) {
        arena.reset()
        _ = amqp_exchange_declare(
            state, Self.channel, arena.bytes(name), arena.bytes(kind), 0, 1, 0, 0, arena.table(arguments))
        try finish("declare the exchange \(name)")
    }

    mutating func declareQueue(_ name: String, arguments: [String: AMQPValue]) throws(AMQPError) {
        arena.reset()
        _ = amqp_queue_declare(state, Self.channel, arena.bytes(name), 0, 1, 0, 0, arena.table(arguments))
        try finish("declare the queue \(name)")
    }

    mutating func bind(queue: String, exchange: String, routingKey: String) throws(AMQPError) {
        arena.reset()
        _ = amqp_queue_bind(
            state, Self.channel, arena.bytes(queue), arena.bytes(exchange), arena.bytes(routingKey), amqp_table_t())
        try finish("bind \(queue) to \(exchange) with \(routingKey)")
    }

    mutating func bind(exchange: String, to source: String, routingKey: String) throws(AMQPError) {
        arena.reset()
        _ = amqp_exchange_bind(
            state, Self.channel, arena.bytes(exchange), arena.bytes(source), arena.bytes(routingKey), amqp_table_t())
        try finish("bind the exchange \(exchange) to \(source) with \(routingKey)")
    }

    mutating func unbind(queue: String, exchange: String, routingKey: String) throws(AMQPError) {
        arena.reset()
        _ = amqp_queue_unbind(
            state, Self.channel, arena.bytes(queue), arena.bytes(exchange), arena.bytes(routingKey), amqp_table_t())
        try finish("unbind \(queue) from \(exchange) with \(routingKey)")
    }

    mutating func deleteQueue(_ name: String) throws(AMQPError) {
        arena.reset()
        _ = amqp_queue_delete(state, Self.channel, arena.bytes(name), 0, 0)
        try finish("delete the queue \(name)")
    }

    mutating func deleteExchange(_ name: String) throws(AMQPError) {
        arena.reset()
        _ = amqp_exchange_delete(state, Self.channel, arena.bytes(name), 0)
        try finish("delete the exchange \(name)")
    }

    private mutating func finish(_ operation: String) throws(AMQPError) {
        defer { amqp_maybe_release_buffers_on_channel(state, Self.channel) }
        try check(amqp_get_rpc_reply(state), operation)
    }
}

package import Logging

/// Takes one message at a time off a queue, and settles it in one transaction with everything published because of it: a
/// process that dies leaves the message in its queue and none of the publishes, or all of them and not the message.
///
/// AMQP's `tx` class. The broker holds back what is published and acknowledged until the commit, and does both at once
/// then, as seen from this side. (A broker that dies itself in that moment may have done the publishes alone: the message
/// then comes again.)
///
/// Has a connection and a thread of its own; connects at the next question when there is none. Nothing is retried: after
/// an error the connection is gone, and what was taken goes back to its queue. Between two calls no more time may pass
/// than a heartbeat: who needs longer calls ``tick()``.
package actor AMQPTransactor {
    private let executor: ThreadExecutor
    private let configuration: AMQPConfiguration
    private let stall: StallGuard
    private var connection: Connection?
    /// Counts connections, so that what one has delivered is never acknowledged on another.
    private var generation: UInt64 = 0

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// - Throws: when the system has no descriptor or thread left.
    package init(_ configuration: AMQPConfiguration, logger: Logger) throws(AMQPError) {
        self.configuration = configuration
        executor = try ThreadExecutor("amqp-tx")
        stall = StallGuard(limit: configuration.timeouts.call * 3)
        try stall.start("amqp-tx") { age in
            logger.warning("The broker takes nothing; the connection is given up", metadata: ["after": "\(age)"])
        }
    }

    deinit { stall.end() }

    /// One message of a queue, to be settled by ``commit(_:settling:)``; `nil` when none is ready. One at a time.
    package func take(from queue: String) throws(AMQPError) -> AMQPDelivery? {
        let generation = try connect()
        return try call { (connection) throws(AMQPError) in
            try connection.get(queue, acknowledging: false, generation: generation)
        }
    }

    /// How many messages are ready in a queue; `nil` when there is no such queue.
    package func depth(of queue: String) throws(AMQPError) -> Int? {
        _ = try connect()
        return try call { (connection) throws(AMQPError) in try connection.queueStatus(queue)?.messages }
    }

    /// Publishes `messages`, mandatory, and acknowledges `delivery`, all of it or nothing.
    ///
    /// - Returns: the messages that reached no queue although the transaction is done, by their message ids.
    ///
    /// **No queue that it publishes to may refuse for its length** (`reject-publish`): RabbitMQ says that it is done, and
    /// drops what was refused.
    ///
    /// - Throws: when nobody knows whether it was done, and when it was not: `delivery` then comes again, unless it was.
    package func commit(_ messages: [AMQPMessage], settling delivery: AMQPDelivery) throws(AMQPError) -> [String] {
        guard connection != nil, delivery.tag.generation == generation else {
            throw AMQPError(.connectionLost, operation: "commit", detail: "the connection that delivered it is gone")
        }
        for message in messages {
            if let fault = message.encodingFault {
                throw AMQPError(.protocolViolation, operation: "commit", detail: fault.text)
            }
        }
        return try call { (connection) throws(AMQPError) in
            for message in messages {
                try connection.publish(message, messageID: message.properties.messageID)
            }
            try connection.send(.ack(delivery.tag.value, multiple: false))
            return try connection.commit()
        }
    }

    /// Answers heartbeats.
    package func tick() throws(AMQPError) {
        guard connection != nil else { return }
        _ = try call { (connection) throws(AMQPError) in try connection.nextFrame() }
    }

    /// Ends the connection; what was taken and not settled goes back to its queue.
    package func close() {
        connection?.close()
        connection = nil
    }

    private func connect() throws(AMQPError) -> UInt64 {
        if connection != nil { return generation }
        var last = AMQPError(.configuration, operation: "connect", detail: "no host is configured")
        let configuration = configuration.refreshed()
        for host in configuration.hosts {
            do throws(AMQPError) {
                var opened = try Connection.open(host, configuration, name: "\(configuration.connectionName) tx")
                try opened.selectTransactions()
                connection = consume opened
                generation += 1
                return generation
            } catch {
                last = error
            }
        }
        throw last
    }

    private func call<R>(_ ask: (inout Connection) throws(AMQPError) -> R) throws(AMQPError) -> R {
        guard connection != nil else {
            throw AMQPError(.closed, operation: "use a transaction", detail: "the connection is closed")
        }
        do throws(AMQPError) {
            return try watched(&connection!, ask)
        } catch {
            connection = nil
            throw error
        }
    }

    private func watched<R>(
        _ connection: inout Connection, _ ask: (inout Connection) throws(AMQPError) -> R
    ) throws(AMQPError) -> R {
        stall.watch(connection.descriptor)
        defer { stall.release() }
        return try ask(&connection)
    }
}

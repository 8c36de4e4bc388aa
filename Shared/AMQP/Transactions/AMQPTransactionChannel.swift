package import Logging

/// Takes messages off a queue one at a time, and settles each in one transaction with the messages published because of
/// it.
///
/// Uses AMQP's `tx` class: the broker applies publishes and acknowledgements at the commit. A crash of this process
/// applies all or none. A crash of the broker during the commit may apply the publishes alone; the message is then
/// redelivered (RabbitMQ: Broker Semantics, Transactions).
///
/// Has a connection and a thread of its own, and connects at the next call when disconnected. Never retries: an error
/// ends the connection, and the unsettled message returns to its queue. Call ``tick()`` when the time between two calls
/// exceeds the heartbeat.
package actor AMQPTransactionChannel {
    private let executor: ThreadExecutor
    private let configuration: AMQPConfiguration
    private let watchdog: SocketWatchdog
    private var connection: Connection?
    /// Counts connections, so that a delivery is never acknowledged on another connection.
    private var generation: UInt64 = 0

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// - Throws: `configuration` when no descriptor or thread is available.
    package init(_ configuration: AMQPConfiguration, logger: Logger) throws(AMQPError) {
        self.configuration = configuration
        executor = try ThreadExecutor("amqp-tx")
        watchdog = SocketWatchdog(limit: configuration.timeouts.call * 3)
        try watchdog.start("amqp-tx") { age in
            logger.warning("Broker does not answer; connection shut down", metadata: ["after": "\(age)"])
        }
    }

    deinit { watchdog.end() }

    /// Takes one message off a queue; `nil` when none is ready. Settle it with ``commit(_:settling:)`` before you take
    /// the next.
    package func take(from queue: String) throws(AMQPError) -> AMQPDelivery? {
        let generation = try connect()
        return try call { (connection) throws(AMQPError) in
            try connection.get(queue, acknowledging: false, generation: generation)
        }
    }

    /// The number of ready messages in a queue; `nil` when the queue does not exist.
    package func depth(of queue: String) throws(AMQPError) -> Int? {
        _ = try connect()
        return try call { (connection) throws(AMQPError) in try connection.queueStatus(queue)?.messages }
    }

    /// Publishes `messages` as mandatory and acknowledges `delivery`, in one transaction.
    ///
    /// **Do not publish to a queue with a length limit and `reject-publish`.** RabbitMQ commits the transaction and
    /// drops the refused message.
    ///
    /// - Returns: The message ids of the returned messages: the transaction is committed, but they reached no queue.
    /// - Throws: When the transaction failed or its result is unknown. If it failed, `delivery` is redelivered.
    package func commit(_ messages: [AMQPMessage], settling delivery: AMQPDelivery) throws(AMQPError) -> [String] {
        guard connection != nil, delivery.tag.generation == generation else {
            throw AMQPError(.connectionLost, operation: "commit", detail: "the delivery belongs to a closed connection")
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

    /// Sends and receives heartbeats.
    package func tick() throws(AMQPError) {
        guard connection != nil else { return }
        _ = try call { (connection) throws(AMQPError) in try connection.nextFrame() }
    }

    /// Disconnects. An unsettled message returns to its queue.
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
        watchdog.watch(connection.descriptor)
        defer { watchdog.release() }
        return try ask(&connection)
    }
}

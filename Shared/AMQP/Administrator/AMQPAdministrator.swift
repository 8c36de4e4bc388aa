package import Logging

/// A short-lived channel for declaring, verifying and looking at topology: for tools, tests and start-up checks.
///
/// Has a connection and a thread of its own for as long as ``with(_:logger:_:)`` runs. Every call is one question to the
/// broker, answered within the configuration's `timeouts.call`. Nothing is retried: an error is the caller's to handle.
/// After the broker refused something the next call works again. No heartbeats: between two calls a tool may take as
/// long as it likes.
package actor AMQPAdministrator {
    private let executor: ThreadExecutor
    private let configuration: AMQPConfiguration
    private var connection: Connection?
    private var channelIsOpen = true
    private var confirms = false
    private var published: UInt64 = 0

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    private init(_ configuration: AMQPConfiguration) throws(AMQPError) {
        self.configuration = configuration
        executor = try ThreadExecutor("amqp-admin")
    }

    /// Connects, runs `body`, and disconnects.
    ///
    /// Tries each host once, in order, and throws the last one's error when none answers.
    package static func with<R: Sendable>(
        _ configuration: AMQPConfiguration, logger: Logger,
        _ body: @Sendable (AMQPAdministrator) async throws -> R
    ) async throws -> R {
        let administrator = try AMQPAdministrator(configuration)
        try await administrator.open()
        do {
            let result = try await body(administrator)
            await administrator.close()
            return result
        } catch {
            logger.debug("administration failed", metadata: ["error": "\(error)"])
            await administrator.close()
            throw error
        }
    }

    /// Connects. The caller closes the connection with ``close()``.
    ///
    /// Tries each host once, in order, and throws the last one's error when none answers.
    package static func open(_ configuration: AMQPConfiguration) async throws -> AMQPAdministrator {
        let administrator = try AMQPAdministrator(configuration)
        try await administrator.open()
        return administrator
    }

    // MARK: - Declarations (durable; the same again is no error, a different one is 406)

    /// - Parameter kind: `topic`, `direct`, `fanout` or `headers`.
    package func declareExchange(
        name: String, kind: String, arguments: [String: AMQPValue] = [:]
    ) throws(AMQPError) {
        try call { (connection) throws(AMQPError) in
            try connection.declareExchange(name, kind: kind, arguments: arguments)
        }
    }

    package func declareQueue(name: String, arguments: [String: AMQPValue] = [:]) throws(AMQPError) {
        try call { (connection) throws(AMQPError) in try connection.declareQueue(name, arguments: arguments) }
    }

    package func bind(queue: String, exchange: String, routingKey: String) throws(AMQPError) {
        try call { (connection) throws(AMQPError) in
            try connection.bind(queue: queue, exchange: exchange, routingKey: routingKey)
        }
    }

    /// Binds an exchange to another, its source, as a queue is bound.
    package func bind(exchange: String, to source: String, routingKey: String) throws(AMQPError) {
        try call { (connection) throws(AMQPError) in
            try connection.bind(exchange: exchange, to: source, routingKey: routingKey)
        }
    }

    package func unbind(queue: String, exchange: String, routingKey: String) throws(AMQPError) {
        try call { (connection) throws(AMQPError) in
            try connection.unbind(queue: queue, exchange: exchange, routingKey: routingKey)
        }
    }

    /// Deletes a queue and what is in it. No error when there is none.
    package func deleteQueue(_ name: String) throws(AMQPError) {
        try call { (connection) throws(AMQPError) in try connection.deleteQueue(name) }
    }

    /// No error when there is none.
    package func deleteExchange(_ name: String) throws(AMQPError) {
        try call { (connection) throws(AMQPError) in try connection.deleteExchange(name) }
    }

    /// Throws away what is ready in a queue.
    package func purge(_ queue: String) throws(AMQPError) {
        try call { (connection) throws(AMQPError) in try connection.purge(queue) }
    }

    // MARK: - Looking, which needs no right to configure

    /// Whether an exchange exists. Its kind cannot be seen over AMQP.
    package func exchangeExists(_ name: String) throws(AMQPError) -> Bool {
        try call { (connection) throws(AMQPError) in try connection.exchangeExists(name) }
    }

    /// How many messages are ready in a queue and how many consumers it has; nil when there is no such queue.
    package func queueStatus(_ name: String) throws(AMQPError) -> (messages: Int, consumers: Int)? {
        try call { (connection) throws(AMQPError) in try connection.queueStatus(name) }
    }

    // MARK: - Messages

    /// Takes one message off a queue; nil when none is ready. It is acknowledged by being sent.
    package func get(_ queue: String) throws(AMQPError) -> AMQPDelivery? {
        try call { (connection) throws(AMQPError) in try connection.get(queue) }
    }

    /// Publishes one message, mandatory, and waits for what the broker says.
    package func publish(_ message: AMQPMessage) throws(AMQPError) -> AMQPConfirmation {
        if let fault = message.encodingFault { return .returned(code: fault.code, text: fault.text) }
        // A channel that the broker closed is opened anew below, without confirms.
        let needsSelect = !confirms || !channelIsOpen
        let patience = configuration.timeouts.call
        do throws(AMQPError) {
            let confirmation = try call { (connection) throws(AMQPError) in
                if needsSelect { try connection.selectConfirms() }
                try connection.publish(message, messageID: message.properties.messageID)
                return try connection.awaitConfirmation(patience)
            }
            confirms = true
            return confirmation
        } catch {
            guard case .channelClosed(let code) = error.code else { throw error }
            return .returned(code: code, text: error.detail)
        }
    }

    // MARK: - The connection

    private func open() throws(AMQPError) {
        let configuration = configuration.refreshed()
        var last: AMQPError?
        for host in configuration.hosts {
            do throws(AMQPError) {
                connection = try Connection.open(
                    host, configuration, name: "\(configuration.connectionName) admin", heartbeat: .zero)
                return
            } catch {
                last = error
            }
        }
        throw last ?? AMQPError(.configuration, operation: "connect", detail: "no host is configured")
    }

    /// Disconnects. Every later call throws `AMQPError.Code.closed`.
    package func close() {
        connection?.close()
        connection = nil
    }

    /// One question. A refusal closes the channel, which is opened again before the next.
    private func call<R>(_ ask: (inout Connection) throws(AMQPError) -> R) throws(AMQPError) -> R {
        guard connection != nil else {
            throw AMQPError(.closed, operation: "administer the broker", detail: "the connection is closed")
        }
        do throws(AMQPError) {
            if !channelIsOpen {
                confirms = false
                try connection!.openChannel(Connection.channel)
                channelIsOpen = true
            }
            return try ask(&connection!)
        } catch {
            switch error.code {
            case .channelClosed: channelIsOpen = false
            case .configuration: break
            case .unreachable, .tls, .refused, .connectionClosed, .connectionLost, .timeout, .protocolViolation,
                .closed,
                .cancelled:
                connection = nil
            }
            throw error
        }
    }
}

extension Connection {
    /// What the broker says about the one message under way.
    fileprivate mutating func awaitConfirmation(_ patience: Duration) throws(AMQPError) -> AMQPConfirmation {
        let deadline = ContinuousClock.now + patience
        var returned: AMQPConfirmation?
        while true {
            while let (_, frame) = try nextFrame() {
                switch frame {
                case .ack: return returned ?? .confirmed
                case .nack: return .nacked
                case .returned(let what): returned = .returned(code: what.code, text: what.text)
                case .channelClose(let close):
                    try answerChannelClose()
                    throw AMQPError(.channelClosed(replyCode: close.code), operation: "publish", detail: close.text)
                case .connectionClose(let close):
                    answerClose()
                    throw AMQPError(.connectionClosed(replyCode: close.code), operation: "publish", detail: close.text)
                case .deliver, .header, .body, .cancel, .blocked, .unblocked, .flow, .heartbeat, .other: continue
                }
            }
            let now = ContinuousClock.now
            guard now < deadline else {
                throw AMQPError(.timeout, operation: "publish", detail: "the broker confirmed nothing in \(patience)")
            }
            waitReadable(deadline - now)
        }
    }
}

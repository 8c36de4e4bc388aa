package import Logging

/// A short-lived channel that declares, verifies and reads topology, for tools, tests and start-up checks.
///
/// Has a connection and a thread of its own while ``with(_:logger:_:)`` runs. Each call is one request to the broker
/// and takes at most `timeouts.call`. Never retries. After a refusal by the broker the next call works. Sends no
/// heartbeats, so the time between two calls has no limit.
package actor AMQPAdministrator {
    private let executor: ThreadExecutor
    private let configuration: AMQPConfiguration
    private var connection: Connection?
    private var channelIsOpen = true
    private var confirms = false

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    private init(_ configuration: AMQPConfiguration) throws(AMQPError) {
        self.configuration = configuration
        executor = try ThreadExecutor("amqp-admin")
    }

    /// Connects, runs `body`, and disconnects.
    ///
    /// Tries each host once, in order. Throws the error of the last host when none accepts.
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
            logger.debug("Administration failed", metadata: ["error": "\(error)"])
            await administrator.close()
            throw error
        }
    }

    /// Connects. Call ``close()`` to disconnect.
    ///
    /// Tries each host once, in order. Throws the error of the last host when none accepts.
    package static func open(_ configuration: AMQPConfiguration) async throws -> AMQPAdministrator {
        let administrator = try AMQPAdministrator(configuration)
        try await administrator.open()
        return administrator
    }

    // MARK: - Declarations (durable; an equal redeclaration succeeds, a different one fails with 406)

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

    /// Binds an exchange to another exchange, `source`.
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

    /// Deletes a queue and its messages. Does nothing when the queue does not exist.
    package func deleteQueue(_ name: String) throws(AMQPError) {
        try call { (connection) throws(AMQPError) in try connection.deleteQueue(name) }
    }

    /// Deletes an exchange. Does nothing when it does not exist.
    package func deleteExchange(_ name: String) throws(AMQPError) {
        try call { (connection) throws(AMQPError) in try connection.deleteExchange(name) }
    }

    // MARK: - Passive declares, which need no configure permission

    /// Whether an exchange exists. AMQP cannot report its type.
    package func exchangeExists(_ name: String) throws(AMQPError) -> Bool {
        try call { (connection) throws(AMQPError) in try connection.exchangeExists(name) }
    }

    /// The number of ready messages and of consumers of a queue; nil when the queue does not exist.
    package func queueStatus(_ name: String) throws(AMQPError) -> (messages: Int, consumers: Int)? {
        try call { (connection) throws(AMQPError) in try connection.queueStatus(name) }
    }

    // MARK: - Messages

    /// Takes one message off a queue, acknowledged on delivery (`no-ack`); nil when none is ready.
    package func get(_ queue: String) throws(AMQPError) -> AMQPDelivery? {
        try call { (connection) throws(AMQPError) in try connection.get(queue) }
    }

    /// Publishes one message as mandatory, and waits for the broker's confirm, nack or return.
    package func publish(_ message: AMQPMessage) throws(AMQPError) -> AMQPConfirmation {
        if let fault = message.encodingFault { return .returned(code: fault.code, text: fault.text) }
        // A new channel opens without confirm mode.
        let needsSelect = !confirms || !channelIsOpen
        let timeout = configuration.timeouts.call
        do throws(AMQPError) {
            let confirmation = try call { (connection) throws(AMQPError) in
                if needsSelect { try connection.selectConfirms() }
                try connection.publish(message, messageID: message.properties.messageID)
                return try connection.awaitConfirmation(timeout)
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

    /// Disconnects. Later calls throw `AMQPError.Code.closed`.
    package func close() {
        connection?.close()
        connection = nil
    }

    /// Runs one request. A refusal closes the channel; the next request opens a new one.
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
    /// The broker's answer to the one published message.
    fileprivate mutating func awaitConfirmation(_ timeout: Duration) throws(AMQPError) -> AMQPConfirmation {
        let deadline = ContinuousClock.now + timeout
        var returned: AMQPConfirmation?
        while true {
            while let (_, frame) = try nextFrame() {
                switch frame {
                case .ack: return returned ?? .confirmed
                case .nack: return .nacked
                case .returned(let method): returned = .returned(code: method.code, text: method.text)
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
                throw AMQPError(.timeout, operation: "publish", detail: "no confirm within \(timeout)")
            }
            waitReadable(deadline - now)
        }
    }
}

/// What went wrong between this process and the broker.
///
/// `operation` says what was being done and on what, `detail` why it failed in the words of the broker or of the
/// library. Neither ever holds a password: addresses are written without credentials.
package struct AMQPError: Error, Hashable, Sendable {
    package enum Code: Hashable, Sendable {
        /// The configuration cannot be used.
        case configuration
        /// No connection could be made: name, route, port.
        case unreachable
        /// The TLS handshake failed, or the broker's certificate is not for this host or from no known authority.
        case tls
        /// The broker refused the login: 403 credentials, 530 virtual host.
        case refused(replyCode: Int)
        /// The broker closed the connection; 320 is an operator's doing.
        case connectionClosed(replyCode: Int)
        /// The broker closed the channel: 403 no permission, 404 not found, 405 locked, 406 precondition failed.
        case channelClosed(replyCode: Int)
        /// The connection broke, or its peer fell silent for two heartbeats.
        case connectionLost
        /// No answer within the time allowed.
        case timeout
        /// What came from the peer is not AMQP as this room knows it.
        case protocolViolation
        /// This side is shut down or shutting down.
        case closed
        /// The caller's task was cancelled.
        case cancelled
    }

    package let code: Code
    package let operation: String
    package let detail: String

    package init(_ code: Code, operation: String, detail: String) {
        self.code = code
        self.operation = operation
        self.detail = detail
    }
}

extension AMQPError: CustomStringConvertible {
    package var description: String { "\(operation): \(detail)" }
}

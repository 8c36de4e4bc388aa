/// An error between this process and the broker.
///
/// `operation` names the action and its object. `detail` is the reason as the broker or the library gives it. Neither
/// contains a password.
package struct AMQPError: Error, Hashable, Sendable {
    package enum Code: Hashable, Sendable {
        /// The configuration is unusable.
        case configuration
        /// The TCP connection failed: name, route or port.
        case unreachable
        /// The TLS handshake failed, or the broker's certificate is for another host or from an unknown authority.
        case tls
        /// The broker refused the login: 403 credentials, 530 virtual host.
        case refused(replyCode: Int)
        /// The broker closed the connection; 320 means by an operator.
        case connectionClosed(replyCode: Int)
        /// The broker closed the channel: 403 no permission, 404 not found, 405 locked, 406 precondition failed.
        case channelClosed(replyCode: Int)
        /// The connection broke, or the peer was silent for two heartbeats.
        case connectionLost
        /// The time limit passed without an answer.
        case timeout
        /// The peer sent invalid AMQP.
        case protocolViolation
        /// The publisher or consumer is shut down.
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

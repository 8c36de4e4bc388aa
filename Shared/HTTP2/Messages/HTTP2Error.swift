/// The reason for a missing response. The cases distinguish whether the peer may have processed the request.
package enum HTTP2Error: Error, Hashable, Sendable {
    /// The peer did not process the request: never fully written, refused, or above the last stream of a GOAWAY.
    case notProcessed(HTTP2Failure)
    /// The whole request was written; the peer may have processed it.
    case ambiguous(HTTP2Failure)
    /// The deadline passed; `written` is true if the whole request had been written.
    case deadlineExceeded(written: Bool)
    /// The calling task was cancelled; `written` as above.
    case cancelled(written: Bool)
    /// The request is not valid HTTP/2; nothing was sent and resending it cannot succeed.
    case invalidRequest(String)
    /// The endpoint or configuration is unusable, for instance because of an unreadable certificate file.
    case invalidConfiguration(String)
    /// The client was shut down before the request was written.
    case closed
}

/// The cause of a failed connection or stream: a stable code and a detail text.
package struct HTTP2Failure: Hashable, Sendable {
    package enum Code: String, Hashable, Sendable {
        /// No TCP or TLS connection: refused, unreachable, unresolvable.
        case connectFailed = "connect-failed"
        /// The client's address check refused all addresses of the host.
        case addressRefused = "address-refused"
        /// The connection was not ready for requests in time.
        case connectTimeout = "connect-timeout"
        /// Client or server rejected the other's certificate.
        case certificateRejected = "certificate-rejected"
        /// ALPN did not negotiate `h2`.
        case noHTTP2 = "no-http2"
        /// The connection ended while the request was open.
        case connectionLost = "connection-lost"
        /// The peer did not answer a PING.
        case unresponsive = "unresponsive"
        /// The stream is above the last stream of a GOAWAY.
        case goAway = "goaway"
        /// RST_STREAM with REFUSED_STREAM.
        case refused = "refused-stream"
        /// RST_STREAM with any other code.
        case reset = "stream-reset"
        /// The maximum number of requests is already waiting for a stream.
        case queueFull = "queue-full"
        /// The request got no stream before its deadline, while others were answered.
        case noStream = "no-stream"
        /// The request waited for a stream when connections were retired, or a retired connection did not process it.
        case retired = "retired"
        /// A response to another request of the same `execute` withdrew the waiting ones (`shouldContinue(after:)`).
        case withdrawn = "withdrawn"
        /// The caller stopped the request before it got a stream (`mayStart`).
        case withheld = "withheld"
    }

    package let code: Code
    package let detail: String

    package init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }
}

extension HTTP2Failure: CustomStringConvertible {
    package var description: String { "\(code.rawValue): \(detail)" }
}

extension HTTP2Error: CustomStringConvertible {
    package var description: String {
        switch self {
        case .notProcessed(let failure): "not processed (\(failure))"
        case .ambiguous(let failure): "may have been processed (\(failure))"
        case .deadlineExceeded(written: true): "deadline passed after the request was written"
        case .deadlineExceeded(written: false): "deadline passed before the request was written"
        case .cancelled(written: true): "cancelled after the request was written"
        case .cancelled(written: false): "cancelled before the request was written"
        case .invalidRequest(let detail): "request cannot be sent: \(detail)"
        case .invalidConfiguration(let detail): detail
        case .closed: "the client was shut down"
        }
    }
}

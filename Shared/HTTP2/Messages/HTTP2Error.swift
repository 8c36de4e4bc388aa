/// Why a request has no response. The case says whether the peer may have acted on it, which decides about resending.
package enum HTTP2Error: Error, Hashable, Sendable {
    /// The peer did not act on the request: never fully written, refused, or above the last stream of a GOAWAY.
    case notProcessed(HTTP2Failure)
    /// The whole request was written and its fate is unknown.
    case ambiguous(HTTP2Failure)
    /// The deadline passed; `written` says whether the whole request had left by then.
    case deadlineExceeded(written: Bool)
    /// The calling task was cancelled; `written` as above.
    case cancelled(written: Bool)
    /// The request cannot be expressed in HTTP/2; nothing was sent and resending it is pointless.
    case invalidRequest(String)
    /// The endpoint or the client's configuration is unusable, for instance a certificate file that cannot be read.
    case invalidConfiguration(String)
    /// The client was shut down before the request was written.
    case closed

    /// Whether the same request may be sent again without any risk of it being processed twice.
    package var isSafeToResend: Bool {
        switch self {
        case .notProcessed, .closed, .deadlineExceeded(written: false), .cancelled(written: false): true
        case .ambiguous, .deadlineExceeded(written: true), .cancelled(written: true): false
        case .invalidRequest, .invalidConfiguration: false
        }
    }
}

/// What went wrong with a connection or a stream: a stable word for machines, a sentence for people.
package struct HTTP2Failure: Hashable, Sendable {
    package enum Code: String, Hashable, Sendable {
        /// No TCP or TLS connection: refused, unreachable, unresolvable.
        case connectFailed = "connect-failed"
        /// The connection was not ready for requests in time.
        case connectTimeout = "connect-timeout"
        /// Either side's certificate was not accepted.
        case certificateRejected = "certificate-rejected"
        /// The peer did not agree on `h2` in the TLS handshake.
        case noHTTP2 = "no-http2"
        /// The connection ended while the request was open.
        case connectionLost = "connection-lost"
        /// The peer left a PING unanswered.
        case unresponsive = "unresponsive"
        /// A GOAWAY says the stream was not processed.
        case goAway = "goaway"
        /// RST_STREAM with REFUSED_STREAM.
        case refused = "refused-stream"
        /// RST_STREAM with any other code.
        case reset = "stream-reset"
        /// As many requests as the configuration allows are already waiting.
        case queueFull = "queue-full"
        /// It waited for a stream until its deadline while others were answered.
        case noStream = "no-stream"
        /// It waited for a stream when the connections were retired, or was not processed on one of them.
        case retired = "retired"
        /// It waited for a stream when another answer of its burst made sending it pointless.
        case withdrawn = "withdrawn"
        /// When it was about to get a stream, its sender said that it may not be sent any more.
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

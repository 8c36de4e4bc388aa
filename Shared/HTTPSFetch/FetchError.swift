/// Why no response was had. Holds at most the scheme, host and port of the URL; never its path or query, nor headers
/// nor bodies.
package struct FetchError: Error, Equatable, Sendable {
    package enum Code: Hashable, Sendable {
        /// The request cannot be made: a URL that is none or not allowed, a header with a line break.
        case invalidRequest
        /// The CA file cannot be read.
        case invalidConfiguration
        /// The host's name has no address, or nobody answers there.
        case unreachable
        /// The peer is not who it should be, or speaks no TLS we accept.
        case untrusted
        case timedOut
        case responseTooLarge
        /// The connection broke, or what came was not HTTP. The request may have been processed.
        case broken
        case cancelled
    }

    package let code: Code
    /// `scheme://host:port`, as far as it is known.
    package let origin: String
    package let detail: String
}

extension FetchError {
    /// Whether the same request may succeed later.
    package var isRetriable: Bool {
        switch code {
        case .unreachable, .untrusted, .timedOut, .broken: true
        case .invalidRequest, .invalidConfiguration, .responseTooLarge, .cancelled: false
        }
    }
}

extension FetchError: CustomStringConvertible {
    package var description: String { "\(origin): \(detail)" }
}

/// The reason for a missing response. Contains at most the URL's scheme, host and port; no path, query, headers or
/// bodies.
package struct FetchError: Error, Equatable, Sendable {
    package enum Code: Hashable, Sendable {
        /// The request is invalid: a malformed or disallowed URL, a header with a line break.
        case invalidRequest
        /// The CA file cannot be read.
        case invalidConfiguration
        /// The host name does not resolve, or the host refuses connections.
        case unreachable
        /// All addresses of the host are refused by the client's address check.
        case addressRefused
        /// The certificate was rejected, or the TLS handshake failed.
        case untrusted
        case timedOut
        case responseTooLarge
        /// The connection broke, or the response was not HTTP. The request may have been processed.
        case broken
        case cancelled
    }

    package let code: Code
    /// `scheme://host:port`, as far as known.
    package let origin: String
    package let detail: String
}

extension FetchError {
    /// Whether the same request may succeed later.
    package var isRetriable: Bool {
        switch code {
        case .unreachable, .untrusted, .timedOut, .broken: true
        case .invalidRequest, .invalidConfiguration, .addressRefused, .responseTooLarge, .cancelled: false
        }
    }
}

extension FetchError: CustomStringConvertible {
    package var description: String { "\(origin): \(detail)" }
}

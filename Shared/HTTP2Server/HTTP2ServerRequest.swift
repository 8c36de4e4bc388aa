package import HTTP2

/// A complete request received by a server.
package struct HTTP2ServerRequest: Hashable, Sendable {
    /// The connection's number, counted from 1.
    package var connection: Int
    /// The stream id: odd, growing in the order in which the client sent its requests.
    package var stream: Int32
    package var method: String
    package var scheme: String
    package var authority: String
    package var path: String
    /// The fields after the pseudo-headers, in order, each with its `neverIndexed` flag.
    package var headers: HTTP2Headers
    package var body: [UInt8]
    /// Whether `:path` was a never-indexed literal.
    package var pathNeverIndexed: Bool
    /// Whether the client presented a trusted certificate.
    package var hasClientCertificate: Bool

    package init(
        connection: Int, stream: Int32, method: String, scheme: String = "https", authority: String = "",
        path: String, headers: HTTP2Headers = [], body: [UInt8] = [], pathNeverIndexed: Bool = false,
        hasClientCertificate: Bool = false
    ) {
        self.connection = connection
        self.stream = stream
        self.method = method
        self.scheme = scheme
        self.authority = authority
        self.path = path
        self.headers = headers
        self.body = body
        self.pathNeverIndexed = pathNeverIndexed
        self.hasClientCertificate = hasClientCertificate
    }
}

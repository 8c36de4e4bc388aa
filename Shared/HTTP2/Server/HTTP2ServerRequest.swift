/// A whole request as a server received it.
package struct HTTP2ServerRequest: Hashable, Sendable {
    /// The connection it came on, numbered from 1 for each server.
    package var connection: Int
    /// Its stream: odd, growing with the order in which the client sent its requests.
    package var stream: Int32
    package var method: String
    package var scheme: String
    package var authority: String
    package var path: String
    /// The fields after the pseudo-headers, in the order and with the indexing they were sent.
    package var headers: HTTP2Headers
    package var body: [UInt8]
    /// Whether `:path` came as a never-indexed literal.
    package var pathNeverIndexed: Bool
    /// Whether the client proved itself with a certificate the server trusts.
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

package import HTTP2

/// A complete request received by a server.
package struct HTTP2ServerRequest: Hashable, Sendable {
    /// The connection's number, counted from 1.
    package var connection: Int
    /// The stream id: odd, growing in the order in which the client sent its requests.
    package var stream: Int32
    package var method: String
    package var scheme = "https"
    package var authority = ""
    package var path: String
    /// The fields after the pseudo-headers, in order, each with its `neverIndexed` flag.
    package var headers: [HTTP2Header] = []
    package var body: [UInt8] = []
    /// Whether `:path` was a never-indexed literal.
    package var pathNeverIndexed = false
    /// Whether the client presented a trusted certificate.
    package var hasClientCertificate = false
}

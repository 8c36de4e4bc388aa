/// A request for the client to send; `:scheme` and `:authority` come from the client's endpoint.
package struct HTTP2Request: Hashable, Sendable {
    package var method: String
    /// The path with its query, starting with a slash. Sent as a never-indexed literal: device tokens live in it.
    package var path: String
    /// The fields after the pseudo-headers, in this order.
    package var headers: [HTTP2Header]
    package var body: [UInt8]

    package init(method: String = "POST", path: String, headers: [HTTP2Header] = [], body: [UInt8] = []) {
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body
    }
}

/// A whole response: what the peer answered, whatever its status.
package struct HTTP2Response: Hashable, Sendable {
    package var status: Int
    /// The fields after `:status`, trailers last.
    package var headers: HTTP2Headers
    /// The body, at most as long as the client's configuration allows.
    package var body: [UInt8]

    package init(status: Int, headers: HTTP2Headers = [], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }
}

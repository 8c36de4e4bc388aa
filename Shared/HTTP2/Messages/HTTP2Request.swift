/// A client request; `:scheme` and `:authority` come from the client's endpoint.
package struct HTTP2Request: Hashable, Sendable {
    package var method: String
    /// Path and query, starting with a slash. Sent as a never-indexed literal, because APNs paths contain device
    /// tokens.
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

/// A complete response of any status.
package struct HTTP2Response: Hashable, Sendable {
    package let status: Int
    /// The fields after `:status`, trailers last, as name, NUL, value, NUL. A field cannot contain NUL
    /// (RFC 9113 §8.2.1). Kept as bytes, since callers read at most one or two fields.
    package let fields: [UInt8]
    /// The body; at most `maximumResponseBody` bytes.
    package let body: [UInt8]
    /// The time from opening the last stream to reading the end of the response; `nil` if the response was cut.
    package let elapsed: Duration?

    package init(status: Int, fields: [UInt8] = [], body: [UInt8] = [], elapsed: Duration? = nil) {
        self.status = status
        self.fields = fields
        self.body = body
        self.elapsed = elapsed
    }

    /// The decoded fields.
    package var headers: HTTP2Headers {
        let texts = fields.split(separator: 0, omittingEmptySubsequences: false).dropLast()
            .map { String(decoding: $0, as: UTF8.self) }
        return HTTP2Headers(
            stride(from: 0, to: texts.count - 1, by: 2).map { HTTP2Header(name: texts[$0], value: texts[$0 + 1]) })
    }
}

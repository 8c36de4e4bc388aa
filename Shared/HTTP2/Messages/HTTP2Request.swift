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
    package let status: Int
    /// The fields after `:status`, trailers last, as they came: name, NUL, value, NUL. No field can hold a NUL
    /// (RFC 9113 §8.2.1), and few readers want more than one of them.
    package let fields: [UInt8]
    /// The body, at most as long as the client's configuration allows.
    package let body: [UInt8]

    package init(status: Int, fields: [UInt8] = [], body: [UInt8] = []) {
        self.status = status
        self.fields = fields
        self.body = body
    }

    /// The fields, read out.
    package var headers: HTTP2Headers {
        let texts = fields.split(separator: 0, omittingEmptySubsequences: false).dropLast()
            .map { String(decoding: $0, as: UTF8.self) }
        return HTTP2Headers(
            stride(from: 0, to: texts.count - 1, by: 2).map { HTTP2Header(name: texts[$0], value: texts[$0 + 1]) })
    }
}

/// One HTTP request.
package struct FetchRequest: Sendable {
    package var method: String
    package var url: String
    /// Names in any case. libcurl sets `Content-Length`, `Host` and similar headers.
    package var headers: [(name: String, value: String)]
    package var body: [UInt8]

    package init(
        method: String = "GET", url: String, headers: [(name: String, value: String)] = [], body: [UInt8] = []
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
    }
}

/// A response of any status.
package struct FetchResponse: Sendable {
    package let status: Int
    /// Names in lower case, in the order received.
    package let headers: [(name: String, value: String)]
    package let body: [UInt8]

    /// The first value of a header.
    package subscript(name: String) -> String? {
        headers.first { $0.name == name.lowercased() }?.value
    }
}

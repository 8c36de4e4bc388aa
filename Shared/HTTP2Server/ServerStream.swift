import HTTP2

/// A stream's request and its response body.
struct ServerStream {
    var method = ""
    var scheme = ""
    var authority = ""
    var path = ""
    var pathNeverIndexed = false
    var headers: [HTTP2Header] = []
    var body: [UInt8] = []
    /// The response body, set once the response has started.
    var response: OutgoingBody?
    var hasResponse = false

    mutating func received(_ header: HTTP2Header) {
        switch header.name {
        case ":method": method = header.value
        case ":scheme": scheme = header.value
        case ":authority": authority = header.value
        case ":path":
            path = header.value
            pathNeverIndexed = header.neverIndexed
        default: headers.append(header)
        }
    }

    func request(on connection: HTTP2ServerConnection, stream: Int32) -> HTTP2ServerRequest {
        HTTP2ServerRequest(
            connection: connection.id, stream: stream, method: method, scheme: scheme, authority: authority,
            path: path, headers: headers, body: body, pathNeverIndexed: pathNeverIndexed,
            hasClientCertificate: connection.hasClientCertificate)
    }
}

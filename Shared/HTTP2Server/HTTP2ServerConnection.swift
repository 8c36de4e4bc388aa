package import HTTP2

/// A snapshot of a server connection.
package struct HTTP2ServerConnection: Hashable, Sendable {
    /// Counted from 1, unique within a server.
    package var id: Int
    package var hasClientCertificate: Bool
    /// Requests whose headers have arrived.
    package var requests = 0
    package var openStreams = 0
    /// The maximum of `openStreams` so far.
    package var peakStreams = 0
    package var pings = 0
}

/// An event of a server connection. Receivers run on the connection's event loop and must not block.
package enum HTTP2ServerEvent: Hashable, Sendable {
    case connectionOpened(HTTP2ServerConnection)
    case pingReceived(connection: Int)
    /// The client sent RST_STREAM, for instance after its deadline.
    case streamReset(connection: Int, stream: Int32, code: HTTP2ErrorCode)
    /// The connection closed; carries its last snapshot.
    case connectionClosed(HTTP2ServerConnection)
}

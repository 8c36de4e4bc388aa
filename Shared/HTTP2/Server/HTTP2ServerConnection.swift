/// A connection of a server at one moment.
package struct HTTP2ServerConnection: Hashable, Sendable {
    /// From 1, never used again by the same server.
    package var id: Int
    package var hasClientCertificate: Bool
    /// Requests whose headers have arrived.
    package var requests = 0
    package var openStreams = 0
    /// The most streams that were ever open at once.
    package var peakStreams = 0
    /// PINGs the client sent.
    package var pings = 0

    package init(id: Int, hasClientCertificate: Bool) {
        self.id = id
        self.hasClientCertificate = hasClientCertificate
    }
}

/// Something that happened on a connection, reported on that connection's event loop: receivers must not block.
package enum HTTP2ServerEvent: Hashable, Sendable {
    case connectionOpened(HTTP2ServerConnection)
    case pingReceived(connection: Int)
    /// The client ended the stream with RST_STREAM, for instance because its deadline passed.
    case streamReset(connection: Int, stream: Int32, code: HTTP2ErrorCode)
    /// The connection as it was when it ended.
    case connectionClosed(HTTP2ServerConnection)
}

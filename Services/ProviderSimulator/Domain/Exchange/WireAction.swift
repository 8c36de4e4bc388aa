/// One action on the wire, in response to a request or on an idle connection.
enum WireAction: Hashable, Sendable {
    case wait(Duration)
    /// Sends HEADERS now, and DATA with END_STREAM after `bodyAfter`.
    case respond(Reply, bodyAfter: Duration)
    /// Sends HEADERS and never ends the stream.
    case begin(Reply)
    /// Sends RST_STREAM with this error code.
    case reset(code: UInt32)
    case goAway(GoAway)
    /// Sends SETTINGS_MAX_CONCURRENT_STREAMS.
    case limitStreams(Int)
    /// Sends a PING.
    case ping
    /// Keeps the connection open, but stops reading and writing.
    case stall
    /// Closes TLS and TCP without GOAWAY.
    case closeConnection
    /// Resets the TCP connection.
    case dropConnection
    /// Never answers the request.
    case silence
}

/// A complete HTTP response.
struct Reply: Hashable, Sendable {
    var status: Int
    var headers: [Header] = []
    var body: [UInt8] = []
}

/// A GOAWAY and the close of the connection after it.
struct GoAway: Hashable, Sendable {
    /// The last stream id in the GOAWAY.
    enum LastStream: Hashable, Sendable {
        /// Excludes the current stream and later ones, which were not processed.
        case before
        /// The current stream; on an idle connection, the last stream received.
        case included
        /// First the maximum stream id, then the last stream received (two GOAWAYs, RFC 9113 §6.8).
        case graceful
        /// This stream id.
        case exactly(Int32)
    }

    var lastStream: LastStream
    /// An HTTP/2 error code; 0 is NO_ERROR.
    var code: UInt32 = 0
    var debugData: [UInt8] = []
    /// Between the two GOAWAYs of a graceful shutdown, and before the connection closes.
    var pause: Duration = .seconds(1)
}

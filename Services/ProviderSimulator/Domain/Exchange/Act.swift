/// What a provider does on the wire about one request, or about a connection that nobody asked about, in order.
enum Act: Hashable, Sendable {
    case wait(Duration)
    /// HEADERS at once, DATA and the end of the stream after `bodyAfter`.
    case respond(Reply, bodyAfter: Duration)
    /// HEADERS alone, and nothing that ends the stream.
    case begin(Reply)
    /// RST_STREAM with this code.
    case reset(code: UInt32)
    case goAway(GoAway)
    /// SETTINGS: from now on this many concurrent streams.
    case limitStreams(Int)
    /// A PING of the server's own.
    case ping
    /// The connection stays open, and nothing is read from it or written to it any more.
    case stall
    /// TLS and TCP are closed in order, without GOAWAY.
    case closeConnection
    /// The TCP connection is reset without a word.
    case dropConnection
    /// The request is never answered.
    case silence
}

/// A whole HTTP answer.
struct Reply: Hashable, Sendable {
    var status: Int
    var headers: [Header] = []
    var body: [UInt8] = []
}

/// How a provider says that a connection ends.
struct GoAway: Hashable, Sendable {
    /// Which streams it still answers.
    enum LastStream: Hashable, Sendable {
        /// All but the one at hand and what follows it: they were not processed.
        case before
        /// Up to the one at hand; on a connection that nobody asked about, all that were seen.
        case included
        /// First every possible stream, then the real one (two GOAWAYs, RFC 9113 §6.8).
        case graceful
        /// Up to this one, whatever it is.
        case exactly(Int32)
    }

    var lastStream: LastStream
    /// An HTTP/2 error code; 0 is NO_ERROR.
    var code: UInt32 = 0
    var debugData: [UInt8] = []
    /// Between the two steps of a graceful end, and between the last step and the close of the connection.
    var pause: Duration = .seconds(1)
}

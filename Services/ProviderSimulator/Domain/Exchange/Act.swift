/// What a provider does on the wire about one request, in order.
enum Act: Hashable, Sendable {
    case wait(Duration)
    /// HEADERS at once, DATA and the end of the stream after `bodyAfter`.
    case respond(Reply, bodyAfter: Duration)
    /// RST_STREAM with this code.
    case reset(code: UInt32)
    case goAway(GoAway)
    /// SETTINGS: from now on this many concurrent streams.
    case limitStreams(Int)
    /// The TCP connection is closed without a word.
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
    enum LastStream: String, Hashable, Sendable, CaseIterable {
        /// All but the one at hand and what follows it: they were not processed.
        case before
        /// Up to the one at hand.
        case included
        /// First every possible stream, then the real one (two GOAWAYs).
        case graceful
    }

    var lastStream: LastStream
    /// An HTTP/2 error code; 0 is NO_ERROR.
    var code: UInt32 = 0
    var debugData: [UInt8] = []
}

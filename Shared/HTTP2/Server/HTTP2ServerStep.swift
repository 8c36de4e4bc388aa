/// One thing a server does about a request or a connection; a handler returns a list of them, done in order.
/// An empty list never answers.
package enum HTTP2ServerStep: Hashable, Sendable {
    /// The whole response at once.
    case respond(status: Int, headers: [HTTP2Header] = [], body: [UInt8] = [])
    /// The response's HEADERS alone; `.data` with `last` must follow somewhere.
    case headers(status: Int, headers: [HTTP2Header] = [])
    /// A piece of the body after `.headers`.
    case data([UInt8], last: Bool)
    /// The steps after it wait this long; other streams are not held up.
    case wait(Duration)
    /// RST_STREAM.
    case reset(HTTP2ErrorCode)
    /// GOAWAY. A graceful end in two steps is `.maximum`, `.wait`, then one with the real last stream.
    case goAway(HTTP2ServerGoAway)
    /// SETTINGS with a new SETTINGS_MAX_CONCURRENT_STREAMS for the whole connection.
    case changeMaximumConcurrentStreams(Int)
    /// PING to the client.
    case ping
    /// Reads and writes nothing on the connection any more, yet keeps it open: a half-dead peer.
    case stall
    /// Closes the connection once everything before this step is on its way, with TLS close_notify, without GOAWAY.
    case closeConnection
    /// Resets the TCP connection at once: no GOAWAY, no close_notify, nothing that is still unsent.
    case dropConnection
}

/// A GOAWAY frame to send.
package struct HTTP2ServerGoAway: Hashable, Sendable {
    /// Which of the client's streams the frame admits to have processed.
    package enum LastStream: Hashable, Sendable {
        /// 2^31-1: stop opening streams, nothing decided yet.
        case maximum
        /// Everything up to and including the stream the steps belong to.
        case this
        /// Everything before the stream the steps belong to.
        case beforeThis
        /// Everything the server has seen.
        case received
        case exactly(Int32)
    }

    package var lastStream: LastStream
    package var code: HTTP2ErrorCode
    package var debugData: [UInt8]

    package init(lastStream: LastStream, code: HTTP2ErrorCode = .noError, debugData: [UInt8] = []) {
        self.lastStream = lastStream
        self.code = code
        self.debugData = debugData
    }

    /// The same with the debug data given as text.
    package init(lastStream: LastStream, code: HTTP2ErrorCode = .noError, debugText: String) {
        self.init(lastStream: lastStream, code: code, debugData: Array(debugText.utf8))
    }
}

extension HTTP2ServerStep {
    /// Announces the end, lets the client finish for `pause`, then ends with the last stream seen (RFC 9113 §6.8).
    package static func gracefulGoAway(debugText: String = "", pause: Duration) -> [HTTP2ServerStep] {
        [
            .goAway(HTTP2ServerGoAway(lastStream: .maximum, debugText: debugText)), .wait(pause),
            .goAway(HTTP2ServerGoAway(lastStream: .received, debugText: debugText)),
        ]
    }
}

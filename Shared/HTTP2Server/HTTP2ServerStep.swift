package import HTTP2

/// One action of a server on a request or connection. A handler returns a list of steps, which run in order.
/// A request with an empty list is never answered.
package enum HTTP2ServerStep: Hashable, Sendable {
    /// Sends a complete response.
    case respond(status: Int, headers: [HTTP2Header] = [], body: [UInt8] = [])
    /// Sends the response HEADERS only; a later `.data` with `last` must follow.
    case headers(status: Int, headers: [HTTP2Header] = [])
    /// Sends part of the body after `.headers`.
    case data([UInt8], last: Bool)
    /// Delays the following steps; other streams are unaffected.
    case wait(Duration)
    /// RST_STREAM.
    case reset(HTTP2ErrorCode)
    /// GOAWAY. A graceful shutdown is `.maximum`, `.wait`, then a GOAWAY with the real last stream.
    case goAway(HTTP2ServerGoAway)
    /// SETTINGS with a new SETTINGS_MAX_CONCURRENT_STREAMS for the whole connection.
    case changeMaximumConcurrentStreams(Int)
    /// PING to the client.
    case ping
    /// Stops reading and writing but keeps the connection open: an unresponsive peer.
    case stall
    /// Closes the connection after the previous steps were written, with TLS close_notify and without GOAWAY.
    case closeConnection
    /// Resets the TCP connection at once, without GOAWAY or close_notify; drops unsent bytes.
    case dropConnection
}

package struct HTTP2ServerGoAway: Hashable, Sendable {
    /// The frame's last stream id.
    package enum LastStream: Hashable, Sendable {
        /// 2^31-1: the client stops opening streams; all open ones are still processed.
        case maximum
        /// The stream of the steps.
        case this
        /// The stream before the one of the steps.
        case beforeThis
        /// The last stream received.
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

    package init(lastStream: LastStream, code: HTTP2ErrorCode = .noError, debugText: String) {
        self.init(lastStream: lastStream, code: code, debugData: Array(debugText.utf8))
    }
}

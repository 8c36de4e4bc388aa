/// What a client has done and has open, as of its event loop's last turn; for metrics and tests.
package struct HTTP2ClientStatistics: Hashable, Sendable {
    /// Connections that became ready for requests, since the start.
    package var connectionsOpened = 0
    /// Attempts that never did.
    package var connectFailures = 0
    /// Ready connections that ended, for whatever reason.
    package var connectionsClosed = 0
    /// Connections that take requests now, and those that only finish what they have.
    package var connections = 0
    package var drainingConnections = 0
    package var openStreams = 0
    /// Requests waiting for a stream.
    package var waiting = 0
    package var responses = 0
    /// Requests that were sent again by themselves.
    package var resends = 0
    package var goAways = 0
    package var lastGoAway: HTTP2GoAwayNotice?
    /// RST_STREAM frames of the peer by code.
    package var resets: [HTTP2ErrorCode: Int] = [:]
    /// Connections given up because a PING brought nothing.
    package var pingTimeouts = 0
    /// The stream limit in force on the connection that spoke last: the peer's, our cap, or one until proven.
    package var streamLimit: Int?
    /// Why the last connection failed or was lost.
    package var lastFailure: HTTP2Failure?
}

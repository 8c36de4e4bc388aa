/// A client's counters and gauges as of its event loop's last pass, for metrics and tests.
package struct HTTP2ClientStatistics: Hashable, Sendable {
    /// Connections that became ready for requests, since the start.
    package var connectionsOpened = 0
    /// Connection attempts that never became ready.
    package var connectFailures = 0
    /// Ready connections that ended, for any reason.
    package var connectionsClosed = 0
    package var connections = 0
    /// Connections that only finish their open requests.
    package var drainingConnections = 0
    package var openStreams = 0
    /// Requests waiting for a stream.
    package var waiting = 0
    package var responses = 0
    /// Transparent resends.
    package var resends = 0
    package var goAways = 0
    package var lastGoAway: HTTP2GoAwayNotice?
    /// RST_STREAM frames received, by code.
    package var resets: [HTTP2ErrorCode: Int] = [:]
    /// Connections closed because a PING was not answered.
    package var pingTimeouts = 0
    /// The stream limit of the connection updated last: the peer's limit, our cap, or one until proven.
    package var streamLimit: Int?
    /// The failure of the last connection that failed or was lost.
    package var lastFailure: HTTP2Failure?
}

package import Primitives

/// Connection limits and time-outs of a client. The defaults suit APNs; for FCM set `maximumConcurrentStreams` to 100
/// and `pingAfter` to nil.
package struct HTTP2ClientConfiguration: Hashable, Sendable {
    /// The maximum number of connections that accept requests. Draining connections do not count.
    package var maximumConnections = 1
    /// Our cap on a connection's open streams; the peer's SETTINGS_MAX_CONCURRENT_STREAMS may be lower.
    package var maximumConcurrentStreams = 1000
    /// Limits a new connection to one stream until a 2xx response has proven its credentials, even if SETTINGS allow
    /// more.
    package var startsWithOneStream = false
    /// The maximum number of requests waiting for a stream. Further ones fail with `queueFull`.
    package var maximumWaiting = 50_000
    /// The maximum number of transparent resends of one request that was certainly not processed.
    package var maximumResends = 3

    /// The time from the name look-up to the peer's SETTINGS.
    package var connectTimeout: Duration = .seconds(10)
    /// The least time between two connections.
    package var connectInterval: Duration = .seconds(1)
    /// The waits after failed connections; half of each is jitter.
    package var connectBackoff = Backoff(base: .milliseconds(200), cap: .seconds(5))

    /// Sends a PING when requests are open and nothing was read for this long; nil disables PINGs.
    package var pingAfter: Duration? = .seconds(10)
    /// Closes a connection when nothing was read for this long after a PING. Without PINGs, drains it when a request
    /// passes its deadline and nothing was read for this long.
    package var pingTimeout: Duration = .seconds(10)
    /// TCP_USER_TIMEOUT: the connection ends when sent bytes stay unacknowledged for this long (Linux only).
    package var unacknowledgedTimeout: Duration? = .seconds(20)

    /// The longest response body, in bytes. A longer one is dropped: the stream is reset and the response has no body.
    package var maximumResponseBody = 64 * 1024
    /// The receive window of each stream and of the connection, in bytes.
    package var receiveWindow = 1 << 20

    package init() {}
}

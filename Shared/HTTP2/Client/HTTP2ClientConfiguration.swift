/// How a client treats its connections. The defaults suit APNs; FCM wants `maximumConcurrentStreams` 100 and
/// `pingAfter` nil.
package struct HTTP2ClientConfiguration: Hashable, Sendable {
    /// How many connections may take requests at once. Those only finishing what they have do not count.
    package var maximumConnections = 1
    /// Our own cap on a connection's open streams, under the peer's SETTINGS_MAX_CONCURRENT_STREAMS.
    package var maximumConcurrentStreams = 1000
    /// Hold a new connection to one stream until a 2xx answer proved its credentials, whatever SETTINGS allow.
    package var startsWithOneStream = false
    /// How many requests may wait for a stream before more are refused with `queueFull`.
    package var maximumWaiting = 50_000
    /// How often one request is sent again by itself after it was certainly not processed.
    package var maximumResends = 3

    /// From the name look-up to the peer's SETTINGS.
    package var connectTimeout: Duration = .seconds(10)
    /// The least time between two connections.
    package var connectInterval: Duration = .seconds(1)
    /// The wait after a first failed connection, doubled by each further one, half of it random …
    package var connectBackoff: Duration = .milliseconds(200)
    /// … up to this much.
    package var maximumConnectBackoff: Duration = .seconds(5)

    /// Send a PING when requests are open and nothing was read for this long; nil never does.
    package var pingAfter: Duration? = .seconds(10)
    /// Give a connection up when a PING has brought nothing for this long; where none is sent, leave it when a request
    /// passes its deadline and nothing at all was read for this long.
    package var pingTimeout: Duration = .seconds(10)
    /// TCP_USER_TIMEOUT: give a connection up when sent bytes stay unacknowledged for this long (Linux only).
    package var unacknowledgedTimeout: Duration? = .seconds(20)

    /// The longest response body, in bytes. A longer one is dropped: its stream is reset, and the response has no body.
    package var maximumResponseBody = 64 * 1024
    /// Our receive windows, of each stream and of the connection.
    package var receiveWindow = 1 << 20

    package init() {}
}

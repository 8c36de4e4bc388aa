import HTTP2
import Metrics
import PushProtocol

/// Connection metrics of one HTTP/2 client.
///
/// `apps` are the apps that share the credential, separated by commas.
struct ConnectionMetrics {
    private let connections: Gauge
    private let streams: Gauge
    private let waiting: Gauge
    private let ready: Counter
    private let failed: Counter
    private let goAways: Counter
    private let resends: Counter
    /// The statistics recorded last, and their client.
    private var last: (client: HTTP2Client, statistics: HTTP2ClientStatistics)?

    /// - Parameter former: the metrics of the same client under another label; counts continue from there.
    init(_ client: ProviderClient, provider: Provider, after former: ConnectionMetrics? = nil) {
        last = former?.last
        let labels = [
            ("provider", provider.rawValue), ("environment", client.environment.rawValue),
            ("apps", client.apps.map(\.rawValue).joined(separator: ",")),
        ]
        connections = Gauge(label: "heliograph_push_connections", dimensions: labels)
        streams = Gauge(label: "heliograph_push_streams_open", dimensions: labels)
        waiting = Gauge(label: "heliograph_push_requests_waiting", dimensions: labels)
        ready = Counter(label: "heliograph_push_connects_total", dimensions: labels + [("result", "ready")])
        failed = Counter(label: "heliograph_push_connects_total", dimensions: labels + [("result", "failed")])
        goAways = Counter(label: "heliograph_push_goaways_total", dimensions: labels)
        resends = Counter(label: "heliograph_push_resends_total", dimensions: labels)
    }

    /// Whether the statistics recorded last are those of `client`.
    func counts(_ client: HTTP2Client) -> Bool { last?.client === client }

    /// Records that no client has this label any more.
    func recordEnd() {
        connections.record(0)
        streams.record(0)
        waiting.record(0)
    }

    mutating func record(_ client: HTTP2Client) {
        let now = client.statistics
        // A new client counts from zero.
        let before = last.flatMap { $0.client === client ? $0.statistics : nil }
        func more(_ count: KeyPath<HTTP2ClientStatistics, Int>) -> Int {
            now[keyPath: count] - (before?[keyPath: count] ?? 0)
        }
        last = (client, now)
        connections.record(now.connections)
        streams.record(now.openStreams)
        waiting.record(now.waiting)
        ready.increment(by: more(\.connectionsOpened))
        failed.increment(by: more(\.connectFailures))
        goAways.increment(by: more(\.goAways))
        resends.increment(by: more(\.resends))
    }
}

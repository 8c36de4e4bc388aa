import Metrics
import Providers
import PushProtocol

/// Whether a route sends, as `heliograph_route_open` and, for one release, under its former name `heliograph_lane_open`.
struct RouteOpenGauge: Sendable {
    /// The labels of a route's metrics.
    let dimensions: [(String, String)]
    private let gauges: [Gauge]

    init(_ route: ProviderRoute, _ provider: Provider) {
        let dimensions = [
            ("provider", provider.rawValue), ("app", route.app.rawValue), ("environment", route.environment.rawValue),
        ]
        self.dimensions = dimensions
        gauges = ["heliograph_route_open", "heliograph_lane_open"].map { Gauge(label: $0, dimensions: dimensions) }
    }

    func record(isOpen: Bool) {
        for gauge in gauges { gauge.record(isOpen ? 1 : 0) }
    }
}

package import FoundationEssentials
package import Providers
package import PushProtocol
import Metrics

/// Records the days until a route's client certificate expires.
package struct CertificateExpiry: Sendable {
    private let gauge: Gauge

    package init(provider: Provider, route: ProviderRoute) {
        gauge = Gauge(
            label: "heliograph_certificate_expiry_days",
            dimensions: [
                ("provider", provider.rawValue), ("app", route.app.rawValue),
                ("environment", route.environment.rawValue),
            ])
    }

    /// Records the days until `notAfter`. Call it periodically, since the value changes with time.
    package func record(_ notAfter: Date, now: Timestamp) { gauge.record(Self.days(until: notAfter, now: now)) }

    /// The days until `notAfter`, with a fraction.
    package static func days(until notAfter: Date, now: Timestamp) -> Double {
        notAfter.timeIntervalSince(now.date) / 86_400
    }
}

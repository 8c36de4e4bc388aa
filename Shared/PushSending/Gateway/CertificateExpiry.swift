package import FoundationEssentials
import Metrics
package import PushProtocol

/// How long a certificate that a lane sends with will last:
///
/// | name | kind | labels | counts |
/// |---|---|---|---|
/// | `heliograph_certificate_expiry_days` | gauge | provider, app, environment | days until `notAfter`; negative once it has passed |
package struct CertificateExpiry: Sendable {
    private let gauge: Gauge

    package init(provider: Provider, lane: LaneKey) {
        gauge = Gauge(
            label: "heliograph_certificate_expiry_days",
            dimensions: [
                ("provider", provider.rawValue), ("app", lane.app.rawValue),
                ("environment", lane.environment.rawValue),
            ])
    }

    /// Days pass without anybody's doing: record again every now and then.
    package func record(_ notAfter: Date, now: Timestamp) { gauge.record(Self.days(until: notAfter, now: now)) }

    /// Days, with their fraction.
    package static func days(until notAfter: Date, now: Timestamp) -> Double {
        notAfter.timeIntervalSince(now.date) / 86_400
    }
}

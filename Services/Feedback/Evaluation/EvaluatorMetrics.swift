import Metrics
import PushProtocol
import Synchronization

/// What feedback counts, beside what every stage does:
///
/// | name | kind | labels | counts |
/// |---|---|---|---|
/// | `heliograph_feedback_evidence_total` | counter | app, provider, environment, decision | evidence by what was decided |
/// | `heliograph_feedback_guard_tripped` | gauge | app, provider, environment | 1 while everything is quarantined |
/// | `heliograph_feedback_quarantined` | gauge | app | registrations that an operator has to look at |
final class EvaluatorMetrics: Sendable {
    private let quarantined = Mutex<[AppID: Gauge]>([:])

    init() {}

    func count(_ report: RouteReport) {
        let lane = Self.dimensions(report.lane)
        for (decision, count) in report.decided where count > 0 {
            Counter(label: "heliograph_feedback_evidence_total", dimensions: lane + [("decision", decision)])
                .increment(by: count)
        }
        let isTripped = report.after != .atRest
        Gauge(label: "heliograph_feedback_guard_tripped", dimensions: lane).record(isTripped ? 1 : 0)
    }

    /// Tells that a guard is at rest which another process has put there.
    func tellRest(of lane: FeedbackRoute) {
        Gauge(label: "heliograph_feedback_guard_tripped", dimensions: Self.dimensions(lane)).record(0)
    }

    private static func dimensions(_ lane: FeedbackRoute) -> [(String, String)] {
        [
            ("app", lane.app.rawValue), ("provider", lane.origin.rawValue), ("environment", lane.environmentWord),
        ]
    }

    /// Tells how many registrations are quarantined; an app that has none any more is told as 0.
    func record(quarantined counts: [AppID: Int]) {
        quarantined.withLock { gauges in
            for app in counts.keys where gauges[app] == nil {
                gauges[app] = Gauge(label: "heliograph_feedback_quarantined", dimensions: [("app", app.rawValue)])
            }
            for (app, gauge) in gauges { gauge.record(counts[app] ?? 0) }
        }
    }
}

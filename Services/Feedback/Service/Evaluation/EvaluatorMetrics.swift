import FeedbackStore
import Metrics
import PushProtocol
import Synchronization

/// Feedback's own metrics.
final class EvaluatorMetrics: Sendable {
    private let quarantined = Mutex<[AppID: Gauge]>([:])

    init() {}

    /// Counts the decisions of an evaluation and records the state of the route's guard.
    func record(_ report: RouteReport) {
        let route = Self.dimensions(report.route)
        for (decision, count) in report.decided where count > 0 {
            Counter(label: "heliograph_feedback_evidence_total", dimensions: route + [("decision", decision)])
                .increment(by: count)
        }
        let isTripped = report.guardAfter != .atRest
        Gauge(label: "heliograph_feedback_guard_tripped", dimensions: route).record(isTripped ? 1 : 0)
    }

    /// Records that another process has reset the guard of `route`.
    func recordReset(of route: FeedbackRoute) {
        Gauge(label: "heliograph_feedback_guard_tripped", dimensions: Self.dimensions(route)).record(0)
    }

    private static func dimensions(_ route: FeedbackRoute) -> [(String, String)] {
        [
            ("app", route.app.rawValue), ("provider", route.origin.rawValue), ("environment", route.environmentLabel),
        ]
    }

    /// Records the quarantined registrations of each app; 0 for an app that no longer has any.
    func record(quarantined counts: [AppID: Int]) {
        quarantined.withLock { gauges in
            for app in counts.keys where gauges[app] == nil {
                gauges[app] = Gauge(label: "heliograph_feedback_quarantined", dimensions: [("app", app.rawValue)])
            }
            for (app, gauge) in gauges { gauge.record(counts[app] ?? 0) }
        }
    }
}

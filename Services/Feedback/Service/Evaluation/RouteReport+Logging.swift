import FeedbackStore
import Logging
import PushProtocol
import ServiceConnections
import ServiceKit

extension [DeadEvidence] {
    func countAndLog(because reason: String, logger: Logger) {
        for row in self {
            let key = "\(row.key.notification)/\(row.key.device)".lowercased()
            DeadRows.report(
                key, of: row.app, in: "feedback.evidence", because: reason, detail: row.detail, logger: logger)
        }
    }
}

extension Logger {
    /// Logs a change of the guard's state, if there is one.
    func logGuardChange(in report: RouteReport) {
        let route: Metadata = [
            LogKey.app: "\(report.route.app)", LogKey.provider: "\(report.route.origin.rawValue)",
            LogKey.environment: "\(report.route.environmentLabel)",
        ]
        switch (report.guardBefore, report.guardAfter) {
        case (.atRest, .tripped(_, let until)):
            let held: Metadata = ["until": "\(RFC3339.string(from: until.date))"]
            if let spike = report.spike {
                error(
                    "Bad-token spike on a route; all its evidence is quarantined and no token is deactivated. See `pushctl feedback quarantine list`",
                    metadata: route.merging(held) { $1 }.merging([
                        "registrations": "\(spike.registrations)", "refused": "\(spike.refused)",
                        "answered": "\(spike.answered)",
                    ]) { $1 })
            } else {
                error(
                    "A sender reported a bad-token spike on its route; all its evidence is quarantined and no token is deactivated. See `pushctl feedback quarantine list`",
                    metadata: route.merging(held) { $1 })
            }
        case (.tripped, .atRest):
            notice("Bad-token spike is over; evaluating the route's evidence again", metadata: route)
        case (.atRest, .atRest), (.tripped, .tripped): break
        }
    }
}

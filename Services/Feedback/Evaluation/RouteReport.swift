import Logging
import PushProtocol
import ServiceConnections
import ServiceKit

/// What one judgement of a lane came to.
struct RouteReport: Hashable, Sendable {
    var lane: FeedbackRoute
    var before: GuardState
    var after: GuardState
    /// What tripped the guard, or keeps it so; `nil` where it is a sender's word.
    var storm: Storm?
    /// How many pieces of evidence got which decision.
    var decided: [String: Int] = [:]
    /// Evidence that was set aside, since it cannot be read.
    var dead: [DeadEvidence] = []
    /// Whether there is more to judge at once.
    var hasMore = false
}

extension [DeadEvidence] {
    /// Counts each row that was set aside, and logs one line for it.
    func report(because reason: String, logger: Logger) {
        for row in self {
            let key = "\(row.key.notification)/\(row.key.device)".lowercased()
            DeadRows.report(
                key, of: row.app, in: "feedback.evidence", because: reason, detail: row.detail, logger: logger)
        }
    }
}

extension Logger {
    /// One line when a guard trips, and one when it is at rest again.
    func report(_ report: RouteReport) {
        let lane: Metadata = [
            LogKey.app: "\(report.lane.app)", LogKey.provider: "\(report.lane.origin.rawValue)",
            LogKey.environment: "\(report.lane.environmentWord)",
        ]
        switch (report.before, report.after) {
        case (.atRest, .tripped(_, let until)):
            let held: Metadata = ["until": "\(RFC3339.string(from: until.date))"]
            if let storm = report.storm {
                error(
                    "Far more tokens are refused than usual: nothing is deactivated, everything is quarantined; see `pushctl feedback quarantine list`",
                    metadata: lane.merging(held) { $1 }.merging([
                        "registrations": "\(storm.registrations)", "refused": "\(storm.refused)",
                        "answered": "\(storm.answered)",
                    ]) { $1 })
            } else {
                error(
                    "A sender has halted its lane, as too many tokens were refused on it at once: nothing is deactivated, everything is quarantined; see `pushctl feedback quarantine list`",
                    metadata: lane.merging(held) { $1 })
            }
        case (.tripped, .atRest):
            notice("The share of refused tokens is normal again: evidence is believed", metadata: lane)
        case (.atRest, .atRest), (.tripped, .tripped): break
        }
    }
}

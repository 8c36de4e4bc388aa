import Logging
import PushProtocol
import ServiceKit

/// What one judgement of a lane came to.
struct LaneReport: Hashable, Sendable {
    var lane: FeedbackLane
    var before: GuardState
    var after: GuardState
    var storm: Storm?
    /// How many pieces of evidence got which decision.
    var decided: [String: Int] = [:]
    /// Whether there is more to judge at once.
    var hasMore = false
}

extension Logger {
    /// One line when a guard trips, and one when it is at rest again.
    func report(_ report: LaneReport) {
        let lane: Metadata = [
            LogKey.app: "\(report.lane.app)", LogKey.provider: "\(report.lane.origin.rawValue)",
            LogKey.environment: "\(report.lane.environmentWord)",
        ]
        switch (report.before, report.after) {
        case (.atRest, .tripped(_, let until)):
            error(
                "Far more tokens are refused than usual: nothing is deactivated, everything is quarantined; see `pushctl feedback quarantine list`",
                metadata: lane.merging([
                    "refused": "\(report.storm?.refused ?? 0)", "answered": "\(report.storm?.answered ?? 0)",
                    "until": "\(RFC3339.string(from: until.date))",
                ]) { $1 })
        case (.tripped, .atRest):
            notice("The share of refused tokens is normal again: evidence is believed", metadata: lane)
        case (.atRest, .atRest), (.tripped, .tripped): break
        }
    }
}

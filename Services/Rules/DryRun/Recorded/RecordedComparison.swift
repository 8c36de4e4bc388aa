import FoundationEssentials
package import PushProtocol
package import RuleEngine
import RuleLanguage

/// Decides recorded events by old and by new rules, page by page.
package struct RecordedComparison: Sendable {
    /// The difference between the pushes of two runs, and the check of the recorded decisions.
    package struct Result: Sendable {
        package var lines: [String]
        package var json: JSONValue
        /// Whether users get the same pushes, and no recorded decision differs.
        package var isClean: Bool
    }

    /// The number of differences of a kind that the lines show. The JSON has all.
    static let shownDifferences = 20

    package private(set) var check = ReplayCheck()
    private let oldRules: RuleSets
    private var old: DryRun
    private var new: DryRun
    private var events = 0
    private var first: Timestamp?
    private var last: Timestamp?
    /// The events whose fan-outs may continue.
    private var largeEvents: [UUID: StoredEvent] = [:]

    /// - Parameters:
    ///   - old: the folder or file of the present rules.
    ///   - new: the folder or file of the candidate; `nil`: the present rules.
    ///   - branch: changes of the candidate, such as `cap=3,quiet=22-8`.
    package init(old: String, new: String?, branch: String?) throws {
        let (oldRules, newRules) = try DryRunFiles.pair(old: old, new: new, branch: branch)
        self.init(oldRules, newRules)
    }

    /// - Parameter spread: the time over which the end of quiet hours is spread.
    init(_ old: RuleSets, _ new: RuleSets, spread: Duration = RuleDecision.spread) {
        oldRules = old
        self.old = DryRun(old)
        self.new = DryRun(new)
        (self.old.spread, self.new.spread) = (spread, spread)
    }

    /// The decisions by the old rules so far.
    var oldPredictions: [DryRun.PredictedDecision] { old.predictions }

    /// The apps of the present rules.
    package var apps: [AppID] { oldRules.ruleSets.keys.sorted() }

    /// Processes recordings in the order of their ids.
    ///
    /// - Returns: the decisions to look up in the decision log, for ``compare(_:)``.
    package mutating func process(_ recordings: [Recording]) -> [ReplayCheck.Key] {
        for recording in recordings {
            first = first ?? recording.at
            last = recording.at
            if case .event(let recorded) = recording.body {
                events += 1
                if recorded.large != nil { largeEvents[recording.event] = recorded.event }
            }
            let large = largeEvents
            let event: (Recording) -> StoredEvent? = { large[$0.event] }
            check.replay(recording, by: oldRules, event)
            old.process(recording, event)
            new.process(recording, event)
        }
        return check.openKeys
    }

    package mutating func compare(_ logged: [ReplayCheck.Key: RuleDecision]) { check.compare(logged) }

    /// Ends the run: releases held notifications for at most 400 days.
    package mutating func result() -> Result {
        if let last {
            old.advance(to: last + DryRunOptions.rest)
            new.advance(to: last + DryRunOptions.rest)
        }
        let differences = DryRunDifference.between(old.predictions, new.predictions)
        let isClean = differences.isEmpty && check.differing.isEmpty
        return Result(lines: lines(differences), json: json(differences), isClean: isClean)
    }
}

// MARK: - Report

extension RecordedComparison {
    private func lines(_ differences: [DryRunDifference]) -> [String] {
        var lines = heading
        for kind in DryRunDifference.Kind.allCases {
            let found = differences.filter { $0.kind == kind }
            guard !found.isEmpty else { continue }
            let users = Set(found.compactMap { $0.prediction.map { PersonKey(app: $0.app, user: $0.user) } })
            lines.append("\(kind.rawValue): \(found.count) pushes to \(users.count) users")
            lines += found.prefix(Self.shownDifferences).compactMap(RuleTool.line)
            let rest = found.count - Self.shownDifferences
            if rest > 0 { lines.append("  and \(rest) more; --json prints all") }
        }
        if differences.isEmpty { lines.append("no difference: every user gets the same pushes at the same time") }
        return lines
    }

    private var heading: [String] {
        guard let first, let last else {
            return ["nothing is recorded in this time; record events with “recording” in the apps file"]
        }
        var lines = [
            "\(events) events from \(RFC3339.string(from: first.date)) to \(RFC3339.string(from: last.date))",
            "\(check.reproduced) decisions reproduced, \(check.differing.count) differ",
        ]
        lines += check.differing.prefix(Self.shownDifferences).map { "  \($0)" }
        if check.unlogged > 0 { lines.append("\(check.unlogged) decisions are not in the decision log any more") }
        for obstacle in ReplayObstacle.allCases {
            guard let count = check.obstacles[obstacle] else { continue }
            lines.append("\(count) decisions not checked: \(obstacle.explanation)")
        }
        return lines
    }

    private func json(_ differences: [DryRunDifference]) -> JSONValue {
        let unchecked = ReplayObstacle.allCases.map {
            ($0.rawValue.replacing("-", with: "_"), JSONValue.int(Int64(check.obstacles[$0] ?? 0)))
        }
        return RuleTool.json(differences).merging([
            "events": .int(Int64(events)), "reproduced": .int(Int64(check.reproduced)),
            "differing": .array(check.differing.map(JSONValue.string)), "unlogged": .int(Int64(check.unlogged)),
            "unchecked": .object(Dictionary(uniqueKeysWithValues: unchecked)),
        ])
    }
}

extension ReplayObstacle {
    fileprivate var explanation: String {
        switch self {
        case .otherRules: "other rules made them"
        case .noEvent: "their event is deleted, or before the begin"
        case .refused: "the rules refuse their event"
        }
    }
}

extension DryRunDifference {
    var prediction: DryRun.PredictedDecision? { new ?? old }
}

package import FoundationEssentials
import Primitives
package import PushProtocol

/// The notifications of each rule in a window of whole hours.
package struct RuleCounts: Hashable, Sendable {
    package var from: Date
    package var until: Date
    /// The time of the window's last count; `nil` if no hour was counted.
    package var countedAt: Date?
    /// By app and rule; versions of a rule set in descending order of `sent`.
    package var rows: [Row]

    /// The counts of a rule in one version of its file.
    package struct Row: Hashable, Sendable {
        package var app: String
        package var rule: String
        package var ruleSet: UUID
        package var figures: Figures
    }

    /// Counts of notifications whose last decision is in the window.
    package struct Figures: Hashable, Sendable {
        /// Notifications with the decision to push.
        package var sent: Int
        /// Notifications with the decision not to push, for any reason.
        package var unsent: Int
        /// Sent notifications that a provider accepted for at least one device.
        package var accepted: Int
        /// Sent notifications that a provider rejected and none accepted.
        package var failed: Int
        package var opened: Int
        package var dismissed: Int
    }
}

extension RuleCounts {
    package var json: JSONValue {
        [
            "from": .string(RFC3339.string(from: from)), "until": .string(RFC3339.string(from: until)),
            "counted_at": .optional(countedAt.map(RFC3339.string(from:))), "counts": .array(rows.map(\.json)),
        ]
    }

    /// The table's lines, with a header line.
    package var lines: [String] {
        guard !rows.isEmpty else { return ["no decisions between \(Self.time(from)) and \(Self.time(until))"] }
        let numbers = ["sent", "unsent", "accepted", "failed", "opened", "dismissed"]
        var table = TextTable(
            ["app", "rule", "rules"].map(TextTable.Column.left) + numbers.map(TextTable.Column.right))
        for row in rows { table.add(row.cells) }
        return table.lines()
    }

    private static func time(_ date: Date) -> String { RFC3339.string(from: date) }
}

extension RuleCounts.Row {
    fileprivate var json: JSONValue {
        [
            "app": .string(app), "rule": .string(rule), "rule_set": .string(ruleSet.uuidString.lowercased()),
            "sent": .int(Int64(figures.sent)), "unsent": .int(Int64(figures.unsent)),
            "accepted": .int(Int64(figures.accepted)), "failed": .int(Int64(figures.failed)),
            "opened": .int(Int64(figures.opened)), "dismissed": .int(Int64(figures.dismissed)),
        ]
    }

    fileprivate var cells: [String] {
        let numbers = [
            figures.sent, figures.unsent, figures.accepted, figures.failed, figures.opened, figures.dismissed,
        ]
        return [app, rule, String(ruleSet.uuidString.lowercased().prefix(8))] + numbers.map(String.init)
    }
}

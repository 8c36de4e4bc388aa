import PushProtocol

/// The counts of each rule: sent, accepted, failed, opened, dismissed.
struct RulesPage {
    enum Window: String, CaseIterable {
        case day, week, month

        var days: Int {
            switch self {
            case .day: 1
            case .week: 7
            case .month: 30
            }
        }

        var title: String {
            switch self {
            case .day: "24 hours"
            case .week: "7 days"
            case .month: "30 days"
            }
        }
    }

    let counts: JSONValue
    let window: Window

    private struct Row {
        var app: String
        var rule: String
        var figures: [String: Int] = [:]

        /// The share of sent notifications that people opened, or `nil` without one.
        func share(_ figure: String) -> Double? {
            guard let sent = figures["sent"], sent > 0 else { return nil }
            return Double(figures[figure] ?? 0) / Double(sent)
        }
    }

    private static let figures = ["sent", "unsent", "accepted", "failed", "opened", "dismissed"]

    func page() -> Page {
        let links = Window.allCases.map { one -> HTML in
            let current: HTML = one == window ? " aria-current=\"true\"" : ""
            return "<li><a href=\"/rules?window=\(one.rawValue)\"\(current)>\(one.title)</a></li>"
        }
        let rows = rows.map { row in
            Parts.row(
                ["\(row.app)", "\(row.rule)"] + Self.figures.map { "\(row.figures[$0] ?? 0)" } + [
                    Self.bar(row.share("opened")), Self.bar(row.share("dismissed")),
                ])
        }
        return Page(
            title: "Rules", section: .rules,
            content: """
                <ul class="tabs">\(links)</ul>
                <p>Counted by the hour of the last decision, most sent first. Counted last: \(Parts.time(counts["counted_at"])).</p>
                \(Parts.table("Counts of each rule",
                    ["App", "Rule", "Sent", "Not sent", "Accepted", "Failed", "Opened", "Dismissed", "Share opened", "Share dismissed"],
                    rows, none: "Nothing is counted in this window."))
                """)
    }

    /// The versions of a rule, added.
    private var rows: [Row] {
        var rows: [String: Row] = [:]
        for count in counts["counts"]?.array ?? [] {
            let (app, rule) = (count["app"]?.string ?? "", count["rule"]?.string ?? "")
            for figure in Self.figures {
                rows["\(app)/\(rule)", default: Row(app: app, rule: rule)].figures[figure, default: 0] +=
                    Int(count[figure]?.int ?? 0)
            }
        }
        return rows.values.sorted {
            ($0.figures["sent"] ?? 0, $1.app, $1.rule) > ($1.figures["sent"] ?? 0, $0.app, $0.rule)
        }
    }

    private static func bar(_ share: Double?) -> HTML {
        guard let share else { return "–" }
        let percent = Int((share * 100).rounded())
        return "<meter min=\"0\" max=\"100\" value=\"\(percent)\">\(percent) %</meter> \(percent) %"
    }
}

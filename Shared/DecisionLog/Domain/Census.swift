package import FoundationEssentials
import PushProtocol

/// The latest census: the number of notifications in each state, and the missing ones.
package struct Census: Hashable, Sendable {
    package struct Row: Hashable, Sendable {
        package var app: String
        /// A ``CensusState``, or the state of a newer release.
        package var state: String
        package var number: Int
        /// The time of the oldest one; absent for settled states.
        package var oldestAt: Date?

        package init(app: String, state: String, number: Int, oldestAt: Date? = nil) {
            self.app = app
            self.state = state
            self.number = number
            self.oldestAt = oldestAt
        }
    }

    /// The oldest missing notification of an app and a state.
    package struct Gap: Hashable, Sendable {
        package var app: String
        package var state: String
        package var number: Int
        package var notification: UUID
        package var event: String
        package var decidedAt: Date

        package init(
            app: String, state: String, number: Int, notification: UUID, event: String, decidedAt: Date
        ) {
            self.app = app
            self.state = state
            self.number = number
            self.notification = notification
            self.event = event
            self.decidedAt = decidedAt
        }
    }

    /// The database's time of the query.
    package var at: Date
    /// When rules counted last; `nil` if it never did.
    package var countedAt: Date?
    /// By app, in the order of ``CensusState``.
    package var rows: [Row]
    package var gaps: [Gap]

    package init(at: Date, countedAt: Date?, rows: [Row], gaps: [Gap]) {
        self.at = at
        self.countedAt = countedAt
        let order = Dictionary(uniqueKeysWithValues: CensusState.allCases.enumerated().map { ($1.rawValue, $0) })
        self.rows = rows.sorted {
            ($0.app, order[$0.state] ?? .max, $0.state) < ($1.app, order[$1.state] ?? .max, $1.state)
        }
        self.gaps = gaps.sorted { ($0.app, $0.decidedAt) < ($1.app, $1.decidedAt) }
    }

    /// The age at which a census says nothing about the present.
    package static let maximumAge = 60.0

    /// Whether rules has counted lately.
    package var isCurrent: Bool { countedAt.map { at.timeIntervalSince($0) <= Self.maximumAge } ?? false }

    package var total: Int { rows.reduce(0) { $0 + $1.number } }
}

/// The text that `pushctl census` prints.
extension Census {
    /// A table whose numbers add up to the line `total`, then the gaps.
    package var lines: [String] {
        guard countedAt != nil else {
            return ["there is no census yet: check that rules is running and that its migrations are applied"]
        }
        let table =
            [["app", "state", "number", "oldest"]]
            + rows.map { [$0.app, $0.state, "\($0.number)", $0.oldestAt.map(age) ?? "-"] }
            + [["total", "", "\(total)", ""]]
        let widths = (0..<4).map { column in table.map { $0[column].count }.max() ?? 0 }
        return table.map { row in
            let cells = row.enumerated().map { column, text in
                let padding = String(repeating: " ", count: widths[column] - text.count)
                return column < 2 ? text + padding : padding + text
            }
            return cells.joined(separator: "  ").trimmedAtEnd
        } + gapLines + ageLines
    }

    private var gapLines: [String] {
        gaps.flatMap { gap in
            let place = CensusState(rawValue: gap.state)?.place ?? "in a stage that only a newer pushctl knows"
            return [
                "gap: \(gap.app): \(gap.number) missing \(place)",
                "  oldest: notification \(gap.notification.uuidString.lowercased()), decided "
                    + "\(RFC3339.string(from: gap.decidedAt)), \(age(gap.decidedAt)) ago",
                "  next: pushctl explain \(gap.event) --app \(gap.app)",
            ]
        }
    }

    private var ageLines: [String] {
        guard let countedAt, !isCurrent else { return [] }
        return ["the census is \(age(countedAt)) old: check that rules is running"]
    }

    private func age(_ date: Date) -> String {
        let seconds = max(0, Int(at.timeIntervalSince(date)))
        return switch seconds {
        case ..<120: "\(seconds) s"
        case ..<7200: "\(seconds / 60) min"
        default: "\(seconds / 3600) h"
        }
    }
}

extension String {
    fileprivate var trimmedAtEnd: String {
        var text = self
        while text.last == " " { text.removeLast() }
        return text
    }
}

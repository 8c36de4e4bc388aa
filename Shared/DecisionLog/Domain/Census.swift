package import FoundationEssentials
import Primitives
package import PushProtocol

/// The latest census: the number of notifications in each state, and the missing ones.
package struct Census: Hashable, Sendable {
    package struct Row: Hashable, Sendable {
        package var app: String
        /// A ``CensusState``, or the state of a newer release.
        package var state: String
        package var number: Int
        /// The time of the oldest one; absent for settled states.
        package var oldestAt: Date?
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

extension Census {
    /// The document of `pushctl census --json`.
    package var json: JSONValue {
        [
            "at": .string(RFC3339.string(from: at)),
            "counted_at": .optional(countedAt.map(RFC3339.string(from:))), "current": .bool(isCurrent),
            "total": .int(Int64(total)),
            "states": .array(
                rows.map { row in
                    [
                        "app": .string(row.app), "state": .string(row.state), "number": .int(Int64(row.number)),
                        "oldest_at": .optional(row.oldestAt.map(RFC3339.string(from:))),
                    ]
                }),
            "missing": .array(
                gaps.map { gap in
                    [
                        "app": .string(gap.app), "state": .string(gap.state), "number": .int(Int64(gap.number)),
                        "notification": .string(gap.notification.uuidString.lowercased()),
                        "event": .string(gap.event), "decided_at": .string(RFC3339.string(from: gap.decidedAt)),
                    ]
                }),
        ]
    }
}

/// The text that `pushctl census` prints.
extension Census {
    /// A table whose numbers add up to the line `total`, then the gaps.
    package var lines: [String] {
        guard countedAt != nil else {
            return ["there is no census yet: check that rules is running and that its migrations are applied"]
        }
        var table = TextTable([.left("app"), .left("state"), .right("number"), .right("oldest")])
        for row in rows { table.add([row.app, row.state, "\(row.number)", row.oldestAt.map(age)]) }
        table.add(["total", " ", "\(total)", " "])
        return table.lines() + gapLines + ageLines
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

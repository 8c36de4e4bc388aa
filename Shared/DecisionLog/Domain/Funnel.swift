package import FoundationEssentials
import Primitives
package import PushProtocol

/// The notifications of an app from the decision to the user, by a property.
package struct Funnel: Hashable, Sendable {
    /// The property of a row.
    package enum Property: String, Hashable, Sendable, CaseIterable {
        case rule, type, day, platform
        case appVersion = "app-version"

        /// Whether rows count the pushes to devices. A receipt does not name its device, so nothing is known of openings.
        package var isOfDevices: Bool {
            switch self {
            case .rule, .type, .day: false
            case .platform, .appVersion: true
            }
        }
    }

    package var app: String
    package var from: Date
    package var until: Date
    package var property: Property
    package var rows: [Row]

    /// The counts of one value of the property: an array with a number for each of ``Property/steps``.
    package struct Row: Hashable, Sendable {
        package var name: String
        package var counts: [Int]

        package init(name: String, counts: [Int]) {
            self.name = name
            self.counts = counts
        }
    }

    package init(app: String, from: Date, until: Date, property: Property, rows: [Row]) {
        self.app = app
        self.from = from
        self.until = until
        self.property = property
        self.rows = rows
    }
}

extension Funnel.Property {
    /// The names of the counts. Of notifications: those with a decision, those to push, those that a provider accepted for
    /// a device, those that users opened or dismissed. Of devices: pushes, accepted ones, dead tokens, other failures.
    package var steps: [String] {
        isOfDevices
            ? ["pushes", "accepted", "dead", "failed"] : ["decided", "sent", "accepted", "opened", "dismissed"]
    }

    /// For each step, the index of the step of which a share is printed; `nil`: none.
    fileprivate var bases: [Int?] { isOfDevices ? [nil, 0, 0, 0] : [nil, 0, 1, 2, 2] }
}

extension Funnel {
    /// Returns the funnel with the rows of rules added up by their types. Rules without a type are under `-`.
    ///
    /// - Parameter types: the types by the names of rules.
    package func byType(_ types: [String: String]) -> Funnel {
        var sums: [String: [Int]] = [:]
        for row in rows {
            let type = types[row.name] ?? "-"
            sums[type] = zip(sums[type] ?? row.counts.map { _ in 0 }, row.counts).map(+)
        }
        var funnel = self
        funnel.property = .type
        funnel.rows = sums.map { Row(name: $0.key, counts: $0.value) }
            .sorted { ($1.counts[0], $0.name) < ($0.counts[0], $1.name) }
        return funnel
    }

    package var json: JSONValue {
        [
            "app": .string(app), "from": .string(RFC3339.string(from: from)),
            "until": .string(RFC3339.string(from: until)), "by": .string(property.rawValue),
            "rows": .array(
                rows.map { row in
                    var members: [String: JSONValue] = [property.rawValue: .string(row.name)]
                    for (step, count) in zip(property.steps, row.counts) { members[step] = .int(Int64(count)) }
                    return .object(members)
                }),
        ]
    }

    /// A table with the share of each step among the notifications of the step before.
    package var lines: [String] {
        guard !rows.isEmpty else {
            return ["no decisions between \(RFC3339.string(from: from)) and \(RFC3339.string(from: until))"]
        }
        var table = TextTable([.left(property.rawValue)] + property.steps.map(TextTable.Column.right))
        for row in rows {
            table.add(
                [row.name]
                    + zip(row.counts, property.bases).map { count, base in
                        guard let base, row.counts[base] > 0 else { return "\(count)" }
                        let percent = Int((Double(count) * 100 / Double(row.counts[base])).rounded())
                        return "\(count) (\(percent) %)"
                    })
        }
        return table.lines()
    }
}

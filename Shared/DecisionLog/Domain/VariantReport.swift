package import FoundationEssentials
import Primitives
package import PushProtocol

/// The variants of a rule, compared by their users.
package struct VariantReport: Hashable, Sendable {
    /// The number that decides which variant is better.
    package enum Measure: String, Hashable, Sendable, CaseIterable {
        case opened, dismissed, accepted
    }

    /// One variant, as the rule file has it.
    package struct Variant: Hashable, Sendable {
        package var name: String
        /// The name of its own rule, which decisions have.
        package var rule: String
        /// Its share of the users, in percent.
        package var share: Int
        package var isHeldOut: Bool

        package init(name: String, rule: String, share: Int, isHeldOut: Bool) {
            self.name = name
            self.rule = rule
            self.share = share
            self.isHeldOut = isHeldOut
        }
    }

    /// Users in the window, each once. A user of a hold-out counts if a push was withheld.
    package struct Figures: Hashable, Sendable {
        package var users = 0
        package var accepted = 0
        package var opened = 0
        package var dismissed = 0
        /// Users that have switched the type or all notifications off since then.
        package var switchedOff = 0

        package init(users: Int = 0, accepted: Int = 0, opened: Int = 0, dismissed: Int = 0, switchedOff: Int = 0) {
            self.users = users
            self.accepted = accepted
            self.opened = opened
            self.dismissed = dismissed
            self.switchedOff = switchedOff
        }
    }

    package var app: String
    package var rule: String
    package var from: Date
    package var until: Date
    package var measure: Measure
    /// In the order of the file. The others are compared with the first.
    package var rows: [Row]

    package struct Row: Hashable, Sendable {
        package var variant: Variant
        package var figures: Figures

        package init(_ variant: Variant, _ figures: Figures) {
            self.variant = variant
            self.figures = figures
        }
    }

    package init(app: String, rule: String, from: Date, until: Date, measure: Measure, rows: [Row]) {
        self.app = app
        self.rule = rule
        self.from = from
        self.until = until
        self.measure = measure
        self.rows = rows
    }
}

extension VariantReport.Figures {
    fileprivate func group(_ measure: VariantReport.Measure) -> SequentialComparison.Group {
        let hits =
            switch measure {
            case .opened: opened
            case .dismissed: dismissed
            case .accepted: accepted
            }
        return SequentialComparison.Group(users: users, hits: hits)
    }

    fileprivate var off: SequentialComparison.Group { SequentialComparison.Group(users: users, hits: switchedOff) }
}

// MARK: - Verdicts

extension VariantReport {
    /// A variant compared with the first one.
    package enum Verdict: String, Hashable, Sendable {
        case tooFew = "too-few"
        case noDifference = "no-difference"
        case better, worse
        /// More users switch the notifications off than with the first variant.
        case harmful
        /// A hold-out gets nothing, so only the users that switched off are compared.
        case notHarmful = "not-harmful"
    }

    /// The largest probability of a false result about any variant.
    package static let level = 0.05

    package func verdict(at index: Int) -> (verdict: Verdict, pValue: Double) {
        let (control, treatment) = (rows[0], rows[index])
        let level = Self.level / Double(max(1, rows.count - 1))
        let off = SequentialComparison(control: control.figures.off, treatment: treatment.figures.off)
        if off.isLargeEnough, off.pValue < level {
            // A hold-out as the first variant shows the harm of the notification itself.
            if off.effect > 0 { return (.harmful, off.pValue) }
        }
        let isComparable = !control.variant.isHeldOut && !treatment.variant.isHeldOut
        guard isComparable else {
            let isLarge = min(control.figures.users, treatment.figures.users) >= SequentialComparison.leastUsers
            return (isLarge ? .notHarmful : .tooFew, off.pValue)
        }
        let compared = SequentialComparison(
            control: control.figures.group(measure), treatment: treatment.figures.group(measure))
        guard compared.isLargeEnough else { return (.tooFew, 1) }
        guard compared.pValue < level else { return (.noDifference, compared.pValue) }
        let isMore = compared.effect > 0
        return (isMore == (measure != .dismissed) ? .better : .worse, compared.pValue)
    }

    /// The verdict on a variant in words.
    private func sentence(at index: Int) -> String {
        let (control, treatment) = (rows[0], rows[index])
        let name = "“\(treatment.variant.name)”"
        let first = "“\(control.variant.name)”"
        func percent(_ group: SequentialComparison.Group) -> String { Self.percent(group.share) }
        let shares =
            "\(percent(treatment.figures.group(measure))) of the users \(measure.rawValue) it, "
            + "\(percent(control.figures.group(measure))) with \(first)"
        let offs =
            "\(percent(treatment.figures.off)) of the users switched it off, \(percent(control.figures.off)) with \(first)"
        let (verdict, pValue) = self.verdict(at: index)
        let p = "p = \(Self.number(pValue))"
        switch verdict {
        case .tooFew:
            return "\(name): too few users for a result; each variant needs \(SequentialComparison.leastUsers) users, "
                + "and both together \(SequentialComparison.leastHits) that \(measure.rawValue) it"
        case .noDifference: return "\(name): no difference shown so far: \(shares) (\(p))"
        case .better: return "\(name) is better: \(shares) (\(p))"
        case .worse: return "\(name) is worse: \(shares) (\(p))"
        case .harmful: return "\(name) is harmful, remove it: \(offs) (\(p))"
        case .notHarmful: return "\(name): no harm shown so far: \(offs) (\(p))"
        }
    }

    private static func percent(_ share: Double) -> String {
        let tenths = Int((share * 1000).rounded())
        return "\(tenths / 10).\(tenths % 10) %"
    }

    private static func number(_ value: Double) -> String {
        let thousandths = Int((value * 1000).rounded())
        guard thousandths > 0 else { return "less than 0.001" }
        return "\(thousandths / 1000)." + String(String(1000 + thousandths % 1000).dropFirst())
    }
}

// MARK: - Output

extension VariantReport {
    package var json: JSONValue {
        [
            "app": .string(app), "rule": .string(rule), "from": .string(RFC3339.string(from: from)),
            "until": .string(RFC3339.string(from: until)), "measure": .string(measure.rawValue),
            "variants": .array(rows.indices.map(json(at:))),
        ]
    }

    private func json(at index: Int) -> JSONValue {
        let (variant, figures) = (rows[index].variant, rows[index].figures)
        var members: [String: JSONValue] = [
            "name": .string(variant.name), "rule": .string(variant.rule), "share": .int(Int64(variant.share)),
            "hold_out": .bool(variant.isHeldOut), "users": .int(Int64(figures.users)),
            "accepted": .int(Int64(figures.accepted)), "opened": .int(Int64(figures.opened)),
            "dismissed": .int(Int64(figures.dismissed)), "switched_off": .int(Int64(figures.switchedOff)),
        ]
        if index > 0 {
            let (verdict, pValue) = self.verdict(at: index)
            members["verdict"] = .string(verdict.rawValue)
            members["p_value"] = .double(pValue)
        }
        return .object(members)
    }

    /// A table of the variants, then a sentence about each but the first.
    package var lines: [String] {
        let numbers = ["share", "users", "accepted", "opened", "dismissed", "switched off"]
        var table = TextTable([.left("variant")] + numbers.map(TextTable.Column.right))
        for row in rows {
            let (variant, figures) = (row.variant, row.figures)
            let counts = [figures.users, figures.accepted, figures.opened, figures.dismissed, figures.switchedOff]
            let name = variant.isHeldOut ? "\(variant.name) (hold-out)" : variant.name
            table.add([name, "\(variant.share)%"] + counts.map(String.init))
        }
        return table.lines() + [""] + rows.indices.dropFirst().map { sentence(at: $0) }
    }
}

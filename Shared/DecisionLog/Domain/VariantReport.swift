package import FoundationEssentials
import Primitives
package import PushProtocol

/// The variants of a rule, compared by their users.
package struct VariantReport: Hashable, Sendable {
    /// The number that decides which variant is better.
    package enum Measure: String, Hashable, Sendable, CaseIterable {
        case opened, dismissed, accepted
    }

    /// A harm that stops a variant.
    package enum Harm: String, Hashable, Sendable, CaseIterable {
        case switchedOff = "switched-off"
        case uninstalled
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
        /// Users with a device whose token was dead within ``uninstallTime`` after a notification, by the provider's answer
        /// to a later push.
        package var uninstalled = 0

        package static let uninstallTime = Duration.seconds(7 * 86_400)

        package init(
            users: Int = 0, accepted: Int = 0, opened: Int = 0, dismissed: Int = 0, switchedOff: Int = 0,
            uninstalled: Int = 0
        ) {
            self.users = users
            self.accepted = accepted
            self.opened = opened
            self.dismissed = dismissed
            self.switchedOff = switchedOff
            self.uninstalled = uninstalled
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
        /// The time from which its users get the first variant, because it was harmful; `nil` if it is not stopped.
        package var stoppedAt: Date?

        package init(_ variant: Variant, _ figures: Figures, stoppedAt: Date? = nil) {
            self.variant = variant
            self.figures = figures
            self.stoppedAt = stoppedAt
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

    fileprivate func group(_ harm: VariantReport.Harm) -> SequentialComparison.Group {
        let hits =
            switch harm {
            case .switchedOff: switchedOff
            case .uninstalled: uninstalled
            }
        return SequentialComparison.Group(users: users, hits: hits)
    }
}

// MARK: - Verdicts

extension VariantReport {
    /// A variant compared with the first one.
    package enum Verdict: String, Hashable, Sendable {
        case tooFew = "too-few"
        case noDifference = "no-difference"
        case better, worse
        /// More users switch the notifications off, or uninstall the app, than with the first variant.
        case harmful
        /// A hold-out gets nothing, so only harm is compared.
        case notHarmful = "not-harmful"
    }

    /// The largest probability of a false result about any variant. That of a false harm is as large.
    package static let level = 0.05

    private var levelOfOne: Double { Self.level / Double(max(1, rows.count - 1)) }

    /// Returns the harm of a variant; `nil` if none is shown. A hold-out as the first variant shows the harm of the
    /// notification itself.
    package func harm(at index: Int) -> (harm: Harm, pValue: Double)? {
        let found = compared(at: index).filter { $0.comparison.effect > 0 }
            .min { $0.comparison.pValue < $1.comparison.pValue }
        // Each of the two harms could be a false alarm.
        guard let found, found.comparison.pValue < levelOfOne / Double(Harm.allCases.count) else { return nil }
        return (found.harm, found.comparison.pValue)
    }

    private func compared(at index: Int) -> [(harm: Harm, comparison: SequentialComparison)] {
        Harm.allCases.map { harm in
            (
                harm,
                SequentialComparison(
                    control: rows[0].figures.group(harm), treatment: rows[index].figures.group(harm))
            )
        }
    }

    package func verdict(at index: Int) -> (verdict: Verdict, pValue: Double) {
        let (control, treatment) = (rows[0], rows[index])
        let level = levelOfOne
        if let harm = harm(at: index) { return (.harmful, harm.pValue) }
        let isComparable = !control.variant.isHeldOut && !treatment.variant.isHeldOut
        guard isComparable else {
            let isLarge = min(control.figures.users, treatment.figures.users) >= SequentialComparison.leastUsers
            return (isLarge ? .notHarmful : .tooFew, compared(at: index).map(\.comparison.pValue).min() ?? 1)
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
        func words(_ harm: Harm) -> String {
            "\(percent(treatment.figures.group(harm))) of the users \(harm.words), "
                + "\(percent(control.figures.group(harm))) with \(first)"
        }
        if let stoppedAt = rows[index].stoppedAt {
            return "\(name) was stopped at \(RFC3339.string(from: stoppedAt)), because it was harmful. Its users get "
                + "\(first). Remove it, or give it another name to try it again"
        }
        let (verdict, pValue) = self.verdict(at: index)
        let p = "p = \(Self.number(pValue))"
        switch verdict {
        case .tooFew:
            return "\(name): too few users for a result; each variant needs \(SequentialComparison.leastUsers) users, "
                + "and both together \(SequentialComparison.leastHits) that \(measure.rawValue) it"
        case .noDifference: return "\(name): no difference shown so far: \(shares) (\(p))"
        case .better: return "\(name) is better: \(shares) (\(p))"
        case .worse: return "\(name) is worse: \(shares) (\(p))"
        case .harmful:
            return "\(name) is harmful, remove it: \(words(harm(at: index)?.harm ?? .switchedOff)) (\(p))"
        case .notHarmful: return "\(name): no harm shown so far: \(words(.switchedOff)) (\(p))"
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

extension VariantReport.Harm {
    fileprivate var words: String {
        switch self {
        case .switchedOff: "switched it off"
        case .uninstalled: "uninstalled the app"
        }
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
            "uninstalled": .int(Int64(figures.uninstalled)),
        ]
        members["stopped_at"] = rows[index].stoppedAt.map { .string(RFC3339.string(from: $0)) }
        if index > 0 {
            let (verdict, pValue) = self.verdict(at: index)
            members["verdict"] = .string(verdict.rawValue)
            members["p_value"] = .double(pValue)
        }
        return .object(members)
    }

    /// A table of the variants, then a sentence about each but the first.
    package var lines: [String] {
        let numbers = ["share", "users", "accepted", "opened", "dismissed", "switched off", "uninstalled"]
        var table = TextTable([.left("variant")] + numbers.map(TextTable.Column.right))
        for row in rows {
            let (variant, figures) = (row.variant, row.figures)
            let counts = [
                figures.users, figures.accepted, figures.opened, figures.dismissed, figures.switchedOff,
                figures.uninstalled,
            ]
            let name = variant.isHeldOut ? "\(variant.name) (hold-out)" : variant.name
            table.add([name, "\(variant.share)%"] + counts.map(String.init))
        }
        return table.lines() + [""] + rows.indices.dropFirst().map { sentence(at: $0) }
    }
}

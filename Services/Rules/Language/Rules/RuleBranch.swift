import FoundationEssentials
import PushProtocol

/// Changes of a rule set for a comparison, such as `cap=3,quiet=22-8`. Pure.
///
/// | change | meaning |
/// |---|---|
/// | `cap=3` | every cap allows three pushes in its window |
/// | `cap.few=3` | the cap `few` does |
/// | `cap.few=3/6h` | in a window of six hours |
/// | `quiet=22-8`, `quiet=22:30-08:00` | quiet hours of users without their own, every day |
/// | `type.offers=off` | the type is off for users without a choice |
package struct RuleBranch: Hashable, Sendable {
    private var changes: [Change] = []
    private let text: String

    private enum Change: Hashable, Sendable {
        /// - Parameter name: `nil` for all caps.
        case cap(name: String?, limit: Int, window: Duration?)
        case quiet(QuietHours)
        case type(name: String, isOn: Bool)
    }

    /// A change that cannot be read or applied. The description is shown to the user.
    package struct Problem: Error, Hashable, CustomStringConvertible { package var description: String }

    package init(_ text: String) throws(Problem) {
        self.text = text
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            changes.append(try RuleBranch.change(part))
        }
    }

    private static func change(_ part: Substring) throws(Problem) -> Change {
        let sides = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = sides[0].split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        let value = sides.count == 2 ? sides[1] : ""
        switch (name[0], name.count) {
        case ("cap", _):
            let parts = value.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
            let window = parts.count == 2 ? Duration(withUnit: parts[1]) : nil
            guard let limit = parts.first.flatMap({ Int($0) }), (1...Cap.highestLimit).contains(limit),
                parts.count == 1 || window != nil
            else {
                throw Problem(description: "“\(part)”: expected cap=1 to cap=\(Cap.highestLimit), or cap.NAME=3/6h")
            }
            return .cap(name: name.count == 2 ? name[1] : nil, limit: limit, window: window)
        case ("quiet", 1):
            let times = value.split(separator: "-", omittingEmptySubsequences: false).map(RuleBranch.clock)
            guard times.count == 2, let start = times[0], let end = times[1], start != end else {
                throw Problem(description: "“\(part)”: expected two times, such as quiet=22-8 or quiet=22:30-08:00")
            }
            return .quiet(QuietHours(days: Set(Weekday.allCases), start: start, end: end))
        case ("type", 2) where value == "on" || value == "off": return .type(name: name[1], isOn: value == "on")
        default:
            throw Problem(
                description: "“\(part)” is no change: expected cap=3, cap.NAME=3/6h, quiet=22-8 or type.NAME=off")
        }
    }

    /// Reads `22`, `8` or `22:30`.
    private static func clock(_ text: Substring) -> LocalTime? {
        guard let hour = Int(text), text.utf8.allSatisfy({ $0 != UInt8(ascii: "+") }) else { return LocalTime(text) }
        return hour == 24 ? LocalTime(minuteOfDay: 0) : LocalTime(minuteOfDay: hour * 60)
    }

    /// The rule set with the changes. Its version differs from the version of the file.
    ///
    /// - Throws: if the rule set lacks a named cap or type, or has no cap at all.
    package func applied(to set: RuleSet) throws(Problem) -> RuleSet {
        var defaults = set.defaults
        for change in changes {
            switch change {
            case .cap(let name, let limit, let window):
                let names = defaults.caps.keys.filter { name == nil || $0 == name }
                guard !names.isEmpty else {
                    throw Problem(
                        description: name.map { "\(set.app) has no cap “\($0)”" } ?? "\(set.app) has no caps")
                }
                for name in names {
                    let former = defaults.caps[name]?.window ?? .zero
                    defaults.caps[name] = Cap(limit: limit, window: window ?? former)
                }
            case .quiet(let hours): defaults.quietHours = hours
            case .type(let name, let isOn):
                guard defaults.types[name] != nil else {
                    throw Problem(description: "\(set.app) has no type “\(name)”")
                }
                defaults.types[name]?.isOn = isOn
            }
        }
        return set.with(
            defaults, version: DerivedID.uuid5(set.version, ["branch", text]))
    }

    package func applied(to ruleSets: RuleSets) throws(Problem) -> RuleSets {
        var sets: [RuleSet] = []
        for set in ruleSets.ruleSets.values { sets.append(try applied(to: set)) }
        return RuleSets(sets)
    }
}

extension RuleSet {
    /// The same rules with other defaults.
    fileprivate func with(_ defaults: AppDefaults, version: UUID) -> RuleSet {
        RuleSet(
            app: app, version: version, events: events, defaults: defaults, rules: rules, signals: signals,
            memberships: memberships, doneByReceipts: doneByReceipts, borrowedEvents: borrowedEvents,
            replacements: replacements)
    }
}

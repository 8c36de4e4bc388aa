import PushProtocol
import StrictYAML
import Yams

/// An app's rule file: `<app>.yaml`.
package enum RuleFile {
    package static let keys = [
        "app", "language", "zone", "types", "caps", "clear-read", "hold-out", "daily-promise", "events", "groups",
        "presence", "reads",
        "done", "revoke", "replace", "live", "rules",
    ]
    package static let required = ["app", "events", "rules"]

    /// Parses a rule file, or throws all errors in it.
    ///
    /// - Parameter file: the file's name without its folder. It must match `app` in the file.
    package static func parse(_ text: String, file: String) throws(RuleFileError) -> RuleSet {
        let (ruleSet, reader) = read(text, file: file)
        guard let ruleSet, reader.problems.isEmpty else {
            throw RuleFileError(problems: reader.problems.sorted { ($0.line, $0.key) < ($1.line, $1.key) })
        }
        return ruleSet
    }

    /// Returns the rules and the reader, which has all errors and the allowed keys of each mapping.
    package static func read(_ text: String, file: String) -> (RuleSet?, RuleFileReader) {
        let reader = RuleFileReader(file: file)
        return (reader.compose(text).flatMap { reader.ruleSet($0, text: text) }, reader)
    }
}

extension RuleFileReader {
    fileprivate func compose(_ text: String) -> Field? {
        do {
            guard let root = try Yams.compose(yaml: text) else {
                report(line: 1, key: "", "the file is empty")
                return nil
            }
            guard root.isWalkable() else {
                report(line: 1, key: "", "its aliases expand to more than \(Node.maximumNodes) nodes")
                return nil
            }
            return field(root, "", line: 1)
        } catch let error as YamlError {
            let (line, problem) = error.located
            report(line: line, key: "", problem)
        } catch {
            report(line: 1, key: "", "not YAML: \(error)")
        }
        return nil
    }

    fileprivate func ruleSet(_ root: Field, text: String) -> RuleSet? {
        guard let table = table(root, keys: RuleFile.keys, required: RuleFile.required) else { return nil }
        let app = table["app"].flatMap { appID($0) }
        catalog = table["events"].flatMap { events($0) } ?? [:]
        let defaults = self.defaults(table)
        language = defaults.language
        var rules = table["rules"].flatMap { ruleList($0, catalog, defaults) }
        let live = table["live"].map { liveRules($0, defaults, besides: rules ?? []) } ?? LiveRules()
        rules?.append(contentsOf: live.rules)
        var signals = live.done
        for (name, read) in [("presence", presence), ("reads", reads), ("done", done), ("revoke", revoke)] {
            if let section = table[name] { signals += read(section, catalog) }
        }
        if let revoke = table["revoke"], let rules { checkRevocations(revoke, rules) }
        let replacements = table["replace"].map { replace($0, catalog, rules) } ?? []
        let receipts = table["done"].map { doneByReceipts($0, rules ?? []) } ?? []
        let memberships = table["groups"].map { groups($0, catalog) } ?? []
        // The examples are tested only if the file has no other errors.
        guard let app, let rules, problems.isEmpty else { return nil }
        let ruleSet = RuleSet(
            app: app, version: DerivedID.uuid5(DerivedID.namespace, ["rule-set", text]), events: Set(catalog.keys),
            defaults: defaults, rules: rules, signals: signals, memberships: memberships, doneByReceipts: receipts,
            borrowedEvents: borrowedEvents, replacements: replacements)
        check(ruleSet, against: catalog)
        checkSignals(ruleSet, against: catalog)
        checkReplacements(ruleSet, against: catalog)
        return ruleSet
    }

    private func appID(_ field: Field) -> AppID? {
        guard let name = text(field) else { return nil }
        guard let app = AppID(rawValue: name) else {
            report(field, "an app id is 1–63 characters of a–z, 0–9 and “-”, not starting with “-”")
            return nil
        }
        guard file == "\(name).yaml" else {
            report(field, "the rules of “\(name)” belong in a file named \(name).yaml")
            return nil
        }
        return app
    }

    private func ruleList(
        _ field: Field, _ catalog: [String: EventShape], _ defaults: AppDefaults
    ) -> [Rule]? {
        let rules = members(field)?.flatMap { name, value -> [Rule] in
            guard TemplateTag.isPath(name), !name.contains(".") else {
                report(value, "a rule's name has only letters, digits, “_” and “-”")
                return []
            }
            guard DirectRule(rawValue: name) == nil else {
                report(value, "“\(name)” is the name of a built-in rule for direct notifications; rename the rule")
                return []
            }
            return self.rules(value, name: name, catalog, defaults)
        }
        var names: Set<String> = []
        for rule in rules ?? [] where !names.insert(rule.name).inserted {
            report(field, "a rule and a variant have the same name “\(rule.name)”; rename one of them")
        }
        return rules
    }
}

extension YamlError {
    fileprivate var located: (line: Int, problem: String) {
        switch self {
        case .scanner(let context, let problem, let mark, _), .parser(let context, let problem, let mark, _),
            .composer(let context, let problem, let mark, _):
            (mark.line, "not YAML: \([context?.text, problem].compactMap(\.self).joined(separator: " "))")
        case .duplicatedKeysInMapping(let names, let context):
            (context.mark.line, "\(names.map { "“\($0)”" }.joined(separator: ", ")) occurs more than once")
        default: (1, "not YAML: \(self)")
        }
    }
}

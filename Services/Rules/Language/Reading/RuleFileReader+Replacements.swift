import Primitives
import PushProtocol

extension RuleFileReader {
    /// Reads `replace`: the events that render a rule's texts again.
    ///
    /// - Parameter rules: the rules of the file; `nil` if one of them has an error.
    func replace(_ field: Field, _ catalog: [String: EventShape], _ rules: [Rule]?) -> [ReplacementSource] {
        (list(field) ?? []).compactMap { field in
            guard
                let table = table(
                    field, keys: ["event", "data", "item", "rule"], required: ["event", "item", "rule"]),
                let when = condition(field, table, catalog: catalog)
            else { return nil }
            let shapes = when.events.compactMap { catalog[$0] }
            let item = table["item"].flatMap { template($0, shapes) }
            let name = table["rule"].flatMap(text)
            if let value = table["rule"], let name, let rules { checkReplaced(value, name, when, rules) }
            guard let item, let name else { return nil }
            return ReplacementSource(place: field.path, when: when, item: item, rule: name)
        }
    }

    /// Reports a rule whose notifications no event can replace.
    private func checkReplaced(_ field: Field, _ name: String, _ when: Rule.Condition, _ rules: [Rule]) {
        guard let rule = rules.first(where: { $0.name == name }) else {
            let hint = NearestMatch.of(name, among: rules.map(\.name)).map { "did you mean “\($0)”?" }
            return report(field, "the file has no rule “\(name)”; \(hint ?? "write the name of a rule of this file")")
        }
        if rule.audience != nil || rule.segment != nil || rule.following != nil {
            report(field, "the recipients of “\(name)” are unknown to rules; name a rule with users or groups")
        } else if rule.how.kind != .alert {
            report(field, "“\(name)” sends \(rule.how.kind.rawValue); only an alert has texts to replace")
        } else if rule.isPersonal {
            report(
                field,
                "“\(name)” uses the object that names the recipient, which this event has not; use only other fields")
        } else if rule.policy.item == nil {
            report(field, "“\(name)” has no policy.item, so its notifications cannot be found; add an item to it")
        }
        if let event = rule.when.events.first(where: when.events.contains) {
            report(field, "“\(event)” makes notifications of “\(name)” itself; replace them by another event")
        }
    }

    /// Tests the entries of `replace` on the examples of their events.
    func checkReplacements(_ ruleSet: RuleSet, against catalog: [String: EventShape]) {
        for source in ruleSet.replacements {
            for type in source.when.events {
                for data in catalog[type]?.examples ?? [] {
                    let event = Self.event(type, data: data, app: ruleSet.app)
                    let scope = Scope(event: event, localization: ruleSet.defaults.localization)
                    do {
                        _ = try ruleSet.replacementDraft(event, scope, source)
                    } catch {
                        let isOwn = error.rule == source.place
                        let place = "\(source.place).\(isOwn ? error.place : "rule")"
                        let texts = isOwn ? "" : "rules.\(error.rule).\(error.place): "
                        report(
                            line: line(of: place), key: place, "with an example of \(type): \(texts)\(error.problem)")
                        return
                    }
                }
            }
        }
    }
}

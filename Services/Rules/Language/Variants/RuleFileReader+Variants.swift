import PushProtocol
import Yams

extension RuleFileReader {
    static let ruleKeys = ["about", "when", "to", "say", "how", "policy", "variants"]
    static let variantKeys = ["share", "hold-out", "say", "how", "policy"]

    /// Reads a rule. A rule with variants becomes one rule for each, named `<rule>-<variant>`: counts, `explain` and
    /// recordings then distinguish them without anything new.
    func rules(
        _ field: Field, name: String, _ catalog: [String: EventShape], _ defaults: AppDefaults
    ) -> [Rule] {
        guard field.node.mapping?["variants"] != nil else {
            return rule(field, name: name, catalog: catalog, defaults: defaults).map { [$0] } ?? []
        }
        guard let table = table(field, keys: Self.ruleKeys, required: ["when", "to"]), let section = table["variants"],
            let variants = members(section)
        else { return [] }
        if variants.count < 2 { report(section, "a rule has at least two variants, for a comparison") }
        var rules: [Rule] = []
        var sum = 0
        for (variant, value) in variants where isName(variant, value) {
            guard let parts = self.table(value, keys: Self.variantKeys, required: ["share"]),
                let share = parts["share"].flatMap({ percent($0) })
            else { continue }
            let field = variantField(table, parts, name: "\(name)-\(variant)", of: field, at: value)
            let isHeldOut = parts["hold-out"].flatMap(flag) ?? false
            if isHeldOut, let change = ["say", "how", "policy"].compactMap({ parts[$0] }).first {
                report(change, "users of a hold-out get nothing; remove this")
            }
            defer { sum += share }
            guard var rule = rule(field, name: "\(name)-\(variant)", catalog: catalog, defaults: defaults) else {
                continue
            }
            rule.variant = Rule.Variant(
                rule: name, name: variant, share: UserShare(percent: sum..<(sum + share)), isHeldOut: isHeldOut)
            checkVariant(rule, value, defaults)
            rules.append(rule)
        }
        if rules.count == variants.count, sum != 100 {
            report(section, "the shares add up to \(sum)%; they must add up to 100%")
        }
        return rules
    }

    /// The rule of one variant: the rule's keys, and those of the variant in place of the same ones.
    private func variantField(
        _ table: [String: Field], _ parts: [String: Field], name: String, of rule: Field, at variant: Field
    ) -> Field {
        let path = "rules.\(name)"
        places[path] = rule.path
        let keys = Self.ruleKeys.filter { $0 != "variants" }.map { key -> (String, Node?) in
            guard let part = parts[key] else { return (key, table[key]?.node) }
            guard let common = table[key]?.node.mapping, let own = part.node.mapping else {
                places["\(path).\(key)"] = part.path
                return (key, part.node)
            }
            for word in own.keys.compactMap(\.scalar?.string) {
                places["\(path).\(key).\(word)"] = "\(part.path).\(word)"
            }
            let members = common.filter { own[$0.key] == nil } + own
            return (key, .keys(members.map { ($0.key.scalar?.string ?? "", $0.value) }))
        }
        return field(.keys(keys), path, line: variant.line)
    }

    private func checkVariant(_ rule: Rule, _ field: Field, _ defaults: AppDefaults) {
        if rule.segment == nil, rule.audience != nil || rule.following != nil {
            report(field, "the recipients are not known here; variants need “users”, a “group” or a “segment” in “to”")
        }
        if defaults.isCritical(rule.policy) {
            report(
                field, "a critical notification reaches all its users alike; remove the variants or use another type")
        }
    }

    /// Reads `hold-out` of the file.
    func holdOut(_ field: Field, types: [String: PreferenceType]) -> HoldOut? {
        let keys = ["share", "types"]
        guard let table = table(field, keys: keys, required: keys), let share = table["share"].flatMap({ percent($0) }),
            let names = table["types"].flatMap(oneOrMore)
        else { return nil }
        var held: Set<String> = []
        for name in names {
            guard let type = text(name) else { continue }
            if types[type] == nil {
                report(
                    name, "“\(type)” is not under “types”; name one of \(types.keys.sorted().joined(separator: ", "))")
            } else if types[type]?.isCritical ?? false {
                report(name, "“\(type)” is critical; nobody can be left out")
            }
            held.insert(type)
        }
        return HoldOut(share: UserShare(percent: 0..<share), types: held)
    }
}

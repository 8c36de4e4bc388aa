package import DecisionLog
import PushProtocol
package import RuleLanguage

extension RuleSet {
    /// The rules with variants, in the order of the file.
    package var comparedRules: [ComparedRule] {
        var names: [String] = []
        var variants: [String: [Rule]] = [:]
        for rule in rules {
            guard let variant = rule.variant else { continue }
            if variants[variant.rule] == nil { names.append(variant.rule) }
            variants[variant.rule, default: []].append(rule)
        }
        return names.map { name in
            let rules = variants[name] ?? []
            return ComparedRule(
                name: name, type: rules.first?.policy.type,
                variants: rules.compactMap { rule in
                    rule.variant.map {
                        VariantReport.Variant(
                            name: $0.name, rule: rule.name, share: $0.share.percent.count, isHeldOut: $0.isHeldOut)
                    }
                })
        }
    }
}

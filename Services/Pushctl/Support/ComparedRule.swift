import DecisionLog
import PushProtocol
import RuleDryRun
import RuleLanguage

/// A rule with variants.
struct ComparedRule {
    let name: String
    /// The preference type of its notifications.
    let type: String?
    /// In the order of the file.
    let variants: [VariantReport.Variant]

    /// Returns the rules with variants, in the order of the file.
    ///
    /// - Parameter path: the app's rule file, or a folder of rule files.
    static func load(_ path: String, app: AppID) throws(RuleFileError) -> [ComparedRule] {
        var names: [String] = []
        var rules: [String: [Rule]] = [:]
        for rule in try AppRuleFile(path, app: app).ruleSet.rules {
            guard let variant = rule.variant else { continue }
            if rules[variant.rule] == nil { names.append(variant.rule) }
            rules[variant.rule, default: []].append(rule)
        }
        return names.map { name in
            let rules = rules[name] ?? []
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

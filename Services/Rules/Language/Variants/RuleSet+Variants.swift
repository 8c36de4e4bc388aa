extension RuleSet {
    /// A rule with variants.
    package struct VariedRule: Sendable {
        package let name: String
        /// The preference type of its notifications.
        package let type: String?
        /// The name of each variant's own rule, and the variant, in the order of the file.
        package var variants: [(rule: String, variant: Rule.Variant)]
    }

    /// The rules with variants, in the order of the file.
    package var variedRules: [VariedRule] {
        var found: [VariedRule] = []
        for rule in rules {
            guard let variant = rule.variant else { continue }
            if found.last?.name == variant.rule {
                found[found.count - 1].variants.append((rule.name, variant))
            } else {
                found.append(
                    VariedRule(name: variant.rule, type: rule.policy.type, variants: [(rule.name, variant)]))
            }
        }
        return found
    }
}

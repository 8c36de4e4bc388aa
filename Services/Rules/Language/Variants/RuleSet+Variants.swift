import PushProtocol

extension RuleSet {
    /// A rule with variants.
    package struct VariedRule: Sendable {
        package let name: String
        /// The preference type of its notifications.
        package let type: String?
        /// The variants in the order of the file: the name, that of the variant's own rule, the share in percent, and
        /// whether its users get nothing.
        package var variants: [(name: String, rule: String, share: Int, isHeldOut: Bool)]
    }

    /// The rules with variants, in the order of the file.
    package var variedRules: [VariedRule] {
        var found: [VariedRule] = []
        for rule in rules {
            guard let variant = rule.variant else { continue }
            if found.last?.name != variant.rule {
                found.append(VariedRule(name: variant.rule, type: rule.policy.type, variants: []))
            }
            found[found.count - 1].variants.append(
                (variant.name, rule.name, variant.share.percent.count, variant.isHeldOut))
        }
        return found
    }
}

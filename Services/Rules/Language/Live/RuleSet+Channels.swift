package import PushProtocol

extension RuleSet {
    /// The environments in which live surfaces of the app use broadcast channels.
    package var channelEnvironments: Set<ProviderEnvironment> {
        rules.reduce(into: []) { found, rule in
            if case .opens(_, let environments, _)? = rule.channels?.role { found.formUnion(environments) }
        }
    }
}

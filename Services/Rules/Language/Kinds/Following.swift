package import PushProtocol
import FoundationEssentials

extension Rule {
    /// The followers of a topic or broadcast channel at a provider. Only the provider knows them.
    struct Following: Hashable, Sendable {
        package enum DestinationKind: String, Hashable, Sendable, CaseIterable {
            case channel
            case topic = "fcm-topic"
            case condition = "fcm-condition"
        }
        package var kind: DestinationKind
        package var name: Template
        /// For a channel: the environment in which it was created.
        package var environment: ProviderEnvironment = .production
    }

    /// Returns the destination for one event; `nil` if the rule has none.
    package func followed(_ scope: Scope) throws(PlacedProblem) -> Broadcast.Destination? {
        guard let following else { return nil }
        let place = "to.\(following.kind.rawValue)"
        func named<Name: ValidatedString>(_ type: Name.Type) throws(PlacedProblem) -> Name {
            try following.name.render(
                scope, place: place, "the name", expected: Name.rule, as: Name.init(rawValue:))
        }
        switch following.kind {
        case .channel: return .channel(try named(ChannelID.self), following.environment)
        case .topic: return .topic(try named(FCMTopic.self))
        case .condition: return .condition(try named(FCMCondition.self))
        }
    }
}

extension Broadcast.Destination {
    /// The channel with this label; `nil` for other labels.
    package init?(channelLabel label: String) {
        let parts = label.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 4, parts[0] == "(channel", parts[2] == "of", parts[3].hasSuffix(")"),
            let channel = ChannelID(rawValue: String(parts[1])),
            let environment = ProviderEnvironment(rawValue: String(parts[3].dropLast()))
        else { return nil }
        self = .channel(channel, environment)
    }

    /// The label in stored decisions.
    package var decisionLabel: String {
        switch self {
        case .channel(let channel, let environment): "(channel \(channel) of \(environment.rawValue))"
        case .topic(let topic): "(FCM topic \(topic))"
        case .condition(let condition): "(FCM condition \(condition))"
        }
    }
}

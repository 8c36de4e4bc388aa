import FoundationEssentials
import PushProtocol

extension Rule {
    /// Whoever follows something at a provider, which alone knows who they are.
    struct Following: Hashable, Sendable {
        enum What: String, Hashable, Sendable, CaseIterable {
            case channel
            case topic = "fcm-topic"
            case condition = "fcm-condition"
        }
        var what: What
        var name: Template
        /// Of a channel: the one that it was created in.
        var environment: ProviderEnvironment = .production
    }

    /// What is followed, for one event.
    func followed(_ scope: Scope) throws(PlacedProblem) -> Broadcast.Destination? {
        guard let following else { return nil }
        let place = "to.\(following.what.rawValue)"
        func named<Name: ValidatedString>(_ type: Name.Type) throws(PlacedProblem) -> Name {
            try following.name.render(
                scope, place: place, "the name", expected: Name.rule, as: Name.init(rawValue:))
        }
        switch following.what {
        case .channel: return .channel(try named(ChannelID.self), following.environment)
        case .topic: return .topic(try named(FCMTopic.self))
        case .condition: return .condition(try named(FCMCondition.self))
        }
    }
}

extension Broadcast.Destination {
    /// As a decision names it.
    var spoken: String {
        switch self {
        case .channel(let channel, let environment): "(channel \(channel) of \(environment.rawValue))"
        case .topic(let topic): "(FCM topic \(topic))"
        case .condition(let condition): "(FCM condition \(condition))"
        }
    }
}

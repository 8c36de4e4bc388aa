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
    func followed(_ scope: Scope) throws(PlacedProblem) -> Broadcast.Followed? {
        guard let following else { return nil }
        let place = "to.\(following.what.rawValue)"
        let name: String
        do { name = try following.name.render(scope) } catch { throw PlacedProblem(place, error) }
        let (followed, expected): (Broadcast.Followed?, String) =
            switch following.what {
            case .channel:
                (ChannelID(rawValue: name).map { .channel($0, following.environment) }, ChannelID.rule)
            case .topic: (FCMTopic(rawValue: name).map(Broadcast.Followed.topic), FCMTopic.rule)
            case .condition: (FCMCondition(rawValue: name).map(Broadcast.Followed.condition), FCMCondition.rule)
            }
        guard let followed else {
            let path = following.name.tags.first?.path ?? "the name"
            throw PlacedProblem(place, .unsuitable(path: path, expected: expected))
        }
        return followed
    }
}

extension Broadcast.Followed {
    /// As a decision names it.
    var spoken: String {
        switch self {
        case .channel(let channel, let environment): "(channel \(channel) of \(environment.rawValue))"
        case .topic(let topic): "(FCM topic \(topic))"
        case .condition(let condition): "(FCM condition \(condition))"
        }
    }
}

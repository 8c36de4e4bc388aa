package import FoundationEssentials

/// A provider-side audience: subscribers of an APNs channel, an FCM topic or a condition. A ``Notification`` to it
/// becomes one push with one target and one request (ProviderFacts.md §A.11, §B.2, §B.3).
package struct Broadcast: Hashable, Sendable {
    /// The notification id of the broadcast and its outcome.
    package var notification: UUID
    package let destination: Destination

    package init(notification: UUID, to destination: Destination) {
        self.notification = notification
        self.destination = destination
    }

    /// A channel, topic or condition.
    package enum Destination: Hashable, Sendable {
        /// An APNs broadcast channel, by its id in one environment.
        case channel(ChannelID, ProviderEnvironment)
        case topic(FCMTopic)
        case condition(FCMCondition)
    }

    package var provider: Provider {
        switch destination {
        case .channel: .apns
        case .topic, .condition: .fcm
        }
    }

    package var environment: ProviderEnvironment {
        switch destination {
        case .channel(_, let environment): environment
        case .topic, .condition: .production
        }
    }

    /// The push's only target. Its device id derives from the destination and the app.
    package func target(in app: AppID, at now: Timestamp) -> Push.Target {
        let (address, name): (Push.Address, String) =
            switch destination {
            case .channel(let channel, _): (.channel, channel.rawValue)
            case .topic(let topic): (.topic, topic.rawValue)
            case .condition(let condition): (.condition, condition.rawValue)
            }
        return Push.Target(
            device: DerivedID.uuid5(
                DerivedID.namespace, [address.rawValue, app.rawValue, environment.rawValue, name]),
            token: DeviceToken(secret: name), address: address, notification: notification, registeredAt: now)
    }
}

extension Notification {
    /// The push for a notification to a broadcast.
    package func push(to broadcast: Broadcast, at now: Timestamp) -> Push {
        let word = "push.\(broadcast.provider.rawValue).\(broadcast.environment.rawValue)"
        return Push(
            trace: trace.next(id: DerivedID.caused(by: trace.id, word)), app: app, provider: broadcast.provider,
            environment: broadcast.environment, lane: lane, content: content, expiresAt: expiresAt,
            delivery: delivery, targets: [broadcast.target(in: app, at: now)])
    }
}

extension Broadcast: Codable {
    private enum CodingKeys: String, CodingKey { case notification, to, channel, environment, topic, condition }
    private enum Kind: String, Codable { case channel, topic, condition }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let destination: Destination =
            switch try container.decode(Kind.self, forKey: .to) {
            case .channel:
                .channel(
                    try container.decode(ChannelID.self, forKey: .channel),
                    try container.decode(ProviderEnvironment.self, forKey: .environment))
            case .topic: .topic(try container.decode(FCMTopic.self, forKey: .topic))
            case .condition: .condition(try container.decode(FCMCondition.self, forKey: .condition))
            }
        self.init(notification: try container.decode(UUID.self, forKey: .notification), to: destination)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(notification, forKey: .notification)
        switch destination {
        case .channel(let channel, let environment):
            try container.encode(Kind.channel, forKey: .to)
            try container.encode(channel, forKey: .channel)
            try container.encode(environment, forKey: .environment)
        case .topic(let topic):
            try container.encode(Kind.topic, forKey: .to)
            try container.encode(topic, forKey: .topic)
        case .condition(let condition):
            try container.encode(Kind.condition, forKey: .to)
            try container.encode(condition, forKey: .condition)
        }
    }
}

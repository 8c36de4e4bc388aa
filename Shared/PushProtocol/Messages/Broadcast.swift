package import FoundationEssentials

/// Whom only a provider knows: whoever follows something there. A ``Notification`` to one becomes one push with one target,
/// and one request reaches all of them (`push-protocols` A.11, B.2, B.3).
package struct Broadcast: Hashable, Sendable {
    /// The notification id of all of it: what its outcome is told under.
    package var notification: UUID
    package let followed: Followed

    package init(notification: UUID, to followed: Followed) {
        self.notification = notification
        self.followed = followed
    }

    /// What is followed.
    package enum Followed: Hashable, Sendable {
        /// An APNs broadcast channel, by the id that APNs gave it in one environment.
        case channel(ChannelID, ProviderEnvironment)
        case topic(FCMTopic)
        case condition(FCMCondition)
    }

    package var provider: Provider {
        switch followed {
        case .channel: .apns
        case .topic, .condition: .fcm
        }
    }

    package var environment: ProviderEnvironment {
        switch followed {
        case .channel(_, let environment): environment
        case .topic, .condition: .production
        }
    }

    /// The one target of its push. Its device follows from what is followed, in which app.
    package func target(in app: AppID, at now: Timestamp) -> Push.Target {
        let (address, name): (Push.Address, String) =
            switch followed {
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
    /// The one push that it becomes when it is to a broadcast.
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
    private enum Word: String, Codable { case channel, topic, condition }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let followed: Followed =
            switch try container.decode(Word.self, forKey: .to) {
            case .channel:
                .channel(
                    try container.decode(ChannelID.self, forKey: .channel),
                    try container.decode(ProviderEnvironment.self, forKey: .environment))
            case .topic: .topic(try container.decode(FCMTopic.self, forKey: .topic))
            case .condition: .condition(try container.decode(FCMCondition.self, forKey: .condition))
            }
        self.init(notification: try container.decode(UUID.self, forKey: .notification), to: followed)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(notification, forKey: .notification)
        switch followed {
        case .channel(let channel, let environment):
            try container.encode(Word.channel, forKey: .to)
            try container.encode(channel, forKey: .channel)
            try container.encode(environment, forKey: .environment)
        case .topic(let topic):
            try container.encode(Word.topic, forKey: .to)
            try container.encode(topic, forKey: .topic)
        case .condition(let condition):
            try container.encode(Word.condition, forKey: .to)
            try container.encode(condition, forKey: .condition)
        }
    }
}

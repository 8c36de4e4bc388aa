package import PushProtocol
package import RuleLanguage

/// A broadcast channel of a live surface that has not ended.
package struct OpenChannel: Hashable, Sendable {
    package var channel: ChannelID
    package var environment: ProviderEnvironment
    /// The time of the event that opened it.
    package var startedAt: Timestamp
    /// The time of the newest event whose state was, or will be, sent to it.
    package var newestAt: Timestamp

    package init(channel: ChannelID, environment: ProviderEnvironment, startedAt: Timestamp, newestAt: Timestamp) {
        self.channel = channel
        self.environment = environment
        self.startedAt = startedAt
        self.newestAt = newestAt
    }

    /// Whether a rule with this role sends the state of an event of this time to it. An event before the start is about
    /// an earlier surface of the item. An older state does not follow a newer one, because APNs keeps only the last
    /// message for phones that are offline.
    package func takes(_ role: SurfaceChannelRole, occurredAt: Timestamp) -> Bool {
        switch role {
        case .opens: false
        case .updates: newestAt <= occurredAt
        case .ends, .endsLater: startedAt <= occurredAt
        }
    }

    /// Returns the channel with the state of an event of this time.
    package func noting(_ occurredAt: Timestamp) -> OpenChannel {
        var channel = self
        channel.newestAt = max(newestAt, occurredAt)
        return channel
    }

    /// Its name in stored decisions. No user has this id.
    package var label: UserID? {
        UserID(rawValue: Broadcast.Destination.channel(channel, environment).decisionLabel)
    }
}

/// A start with so many recipients that its surface gets channels.
package struct ChannelOpening: Hashable, Sendable {
    package var item: ItemKey
    package var environments: Set<ProviderEnvironment>
    package var startedAt: Timestamp
    package var endsAfter: Duration
}

extension NotificationDraft {
    /// The item whose broadcast channels it uses.
    package var channelItem: ItemKey? { channels.map { ItemKey(app: rendered.app, item: $0.item) } }

    /// Returns the channels that it opens, if it has this number of recipients; `nil` for none.
    package func opening(recipients: Int, _ record: EventRecord) -> ChannelOpening? {
        guard case .opens(let above, let environments, let endsAfter)? = channels?.role, recipients > above,
            let item = channelItem
        else { return nil }
        return ChannelOpening(
            item: item, environments: environments, startedAt: record.occurredAt, endsAfter: endsAfter)
    }

    /// Returns the draft with channels as its recipients.
    package func addressed(to channels: [UserID]) -> NotificationDraft {
        var draft = self
        draft.append(channels.sorted { $0.rawValue < $1.rawValue })
        return draft
    }

    /// Returns the start of a surface with the channels that phones follow.
    package func starting(on channels: [ItemKey: [OpenChannel]]) -> NotificationDraft {
        guard !isToChannels, let open = channelItem.flatMap({ channels[$0] }), !open.isEmpty else { return self }
        var draft = self
        var override = rendered.content.apns ?? APNsOverride()
        override.channels = Dictionary(open.map { ($0.environment.rawValue, $0.channel) }) { first, _ in first }
        draft.rendered.content.apns = override
        return draft
    }
}

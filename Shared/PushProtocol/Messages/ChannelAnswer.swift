package import FoundationEssentials

/// The answer of the APNs sender to a ``ChannelRequest``. Exchange `channels`, routing key `answer.<app>`.
///
/// A repeated request can have several answers, each with a new channel.
package struct ChannelAnswer: WireMessage, Hashable {
    package static let messageType = "heliograph.channel-answer"
    package static let messageVersion = 1

    package var trace: Trace
    package var app: AppID
    package var environment: ProviderEnvironment
    /// The id of the request.
    package var id: UUID
    package var result: Result

    package enum Result: Hashable, Sendable {
        case created(ChannelID)
        /// Also for a channel that APNs does not know.
        case deleted
        /// APNs refuses the request, or the sender cannot make it. A repetition at once would fail too.
        case refused(reason: String)
    }

    package init(trace: Trace, app: AppID, environment: ProviderEnvironment, id: UUID, result: Result) {
        self.trace = trace
        self.app = app
        self.environment = environment
        self.id = id
        self.result = result
    }

    /// Accepts `answer.<app>`.
    package func check(routingKey: String) throws(WireError) {
        guard routingKey == RoutingKey.channelAnswer(app) else { throw .misrouted("names another app than the body") }
    }
}

extension ChannelAnswer: Codable {
    private enum CodingKeys: String, CodingKey { case trace, app, environment, id, result, channel, reason }
    private enum Word: String, Codable { case created, deleted, refused }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let result: Result =
            switch try container.decode(Word.self, forKey: .result) {
            case .created: .created(try container.decode(ChannelID.self, forKey: .channel))
            case .deleted: .deleted
            case .refused: .refused(reason: try container.decode(String.self, forKey: .reason))
            }
        self.init(
            trace: try container.decode(Trace.self, forKey: .trace),
            app: try container.decode(AppID.self, forKey: .app),
            environment: try container.decode(ProviderEnvironment.self, forKey: .environment),
            id: try container.decode(UUID.self, forKey: .id), result: result)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(trace, forKey: .trace)
        try container.encode(app, forKey: .app)
        try container.encode(environment, forKey: .environment)
        try container.encode(id, forKey: .id)
        switch result {
        case .created(let channel):
            try container.encode(Word.created, forKey: .result)
            try container.encode(channel, forKey: .channel)
        case .deleted: try container.encode(Word.deleted, forKey: .result)
        case .refused(let reason):
            try container.encode(Word.refused, forKey: .result)
            try container.encode(reason, forKey: .reason)
        }
    }
}

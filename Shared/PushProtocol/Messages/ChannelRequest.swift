package import FoundationEssentials

/// A request of rules to the APNs sender, which has the app's signing key: to create or delete a broadcast channel.
/// Exchange `channels`, routing key `request.<app>`. The sender answers with a ``ChannelAnswer``.
package struct ChannelRequest: WireMessage, Hashable {
    package static let messageType = "heliograph.channel-request"
    package static let messageVersion = 1

    package var trace: Trace
    package var app: AppID
    package var environment: ProviderEnvironment
    /// The channel's row at rules. A repeated request has the same id.
    package var id: UUID
    package var operation: Operation

    package enum Operation: Hashable, Sendable {
        case create
        case delete(ChannelID)
    }

    package init(trace: Trace, app: AppID, environment: ProviderEnvironment, id: UUID, operation: Operation) {
        self.trace = trace
        self.app = app
        self.environment = environment
        self.id = id
        self.operation = operation
    }

    /// Accepts `request.<app>`.
    package func check(routingKey: String) throws(WireError) {
        guard routingKey == RoutingKey.channelRequest(app) else { throw .misrouted("names another app than the body") }
    }
}

extension ChannelRequest: Codable {
    private enum CodingKeys: String, CodingKey { case trace, app, environment, id, operation, channel }
    private enum Word: String, Codable { case create, delete }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let operation: Operation =
            switch try container.decode(Word.self, forKey: .operation) {
            case .create: .create
            case .delete: .delete(try container.decode(ChannelID.self, forKey: .channel))
            }
        self.init(
            trace: try container.decode(Trace.self, forKey: .trace),
            app: try container.decode(AppID.self, forKey: .app),
            environment: try container.decode(ProviderEnvironment.self, forKey: .environment),
            id: try container.decode(UUID.self, forKey: .id), operation: operation)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(trace, forKey: .trace)
        try container.encode(app, forKey: .app)
        try container.encode(environment, forKey: .environment)
        try container.encode(id, forKey: .id)
        switch operation {
        case .create: try container.encode(Word.create, forKey: .operation)
        case .delete(let channel):
            try container.encode(Word.delete, forKey: .operation)
            try container.encode(channel, forKey: .channel)
        }
    }
}

extension Push {
    private enum CodingKeys: String, CodingKey {
        case trace, app, provider, environment, lane, content, expiresAt, delivery, targets
    }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            trace: try container.decode(Trace.self, forKey: .trace),
            app: try container.decode(AppID.self, forKey: .app),
            provider: try container.decode(Provider.self, forKey: .provider),
            environment: try container.decode(ProviderEnvironment.self, forKey: .environment),
            lane: try container.decode(Lane.self, forKey: .lane),
            content: try container.decode(PushContent.self, forKey: .content),
            expiresAt: try container.decodeIfPresent(Timestamp.self, forKey: .expiresAt),
            delivery: try container.decodeIfPresent(DeliveryPolicy.self, forKey: .delivery),
            targets: try container.decode(PushTargets.self, forKey: .targets).targets)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(trace, forKey: .trace)
        try container.encode(app, forKey: .app)
        try container.encode(provider, forKey: .provider)
        try container.encode(environment, forKey: .environment)
        try container.encode(lane, forKey: .lane)
        try container.encode(storage, forKey: .content)
        try container.encodeIfPresent(expiresAt, forKey: .expiresAt)
        try container.encodeIfPresent(delivery, forKey: .delivery)
        try container.encode(PushTargets(targets: targets), forKey: .targets)
    }
}

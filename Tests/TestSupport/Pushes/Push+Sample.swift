package import FoundationEssentials
package import PushProtocol

extension Timestamp {
    /// 2026-01-01T00:00:00Z: the `NOW` of the conformance vectors.
    package static let sample = Timestamp(milliseconds: 1_767_225_600_000)
}

extension Push {
    /// A push as the registry creates it, with defaults for all values.
    package static func sample(
        _ content: Content = Content(title: "Hi", body: "Yo"), provider: Provider = .apns, app: String = "demo",
        environment: ProviderEnvironment = .production, lane: Lane = .interactive, expiresAt: Timestamp? = nil,
        delivery: DeliveryPolicy? = nil, targets: [Target] = [.sample()], id: UUID = UUID()
    ) -> Push {
        Push(
            trace: Trace(id: id, correlation: "event-1", causation: "notification-1"), app: AppID(rawValue: app)!,
            provider: provider, environment: environment, lane: lane, content: content, expiresAt: expiresAt,
            delivery: delivery, targets: targets)
    }
}

extension Push.Target {
    /// A target with the given token, by default the conformance vectors' `T1`.
    package static func sample(
        token: String = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f", badge: Int? = nil,
        device: UUID = UUID(), notification: UUID = UUID(), address: Push.Address? = nil,
        registeredAt: Timestamp = Timestamp(milliseconds: 1_767_220_000_000), fallback: String? = nil,
        owner: Int? = nil
    ) -> Push.Target {
        Push.Target(
            device: device, token: DeviceToken(secret: token), address: address, notification: notification,
            badge: badge, registeredAt: registeredAt, fallback: fallback.map(DeviceToken.init(secret:)),
            owner: owner.map { UserHash(rawValue: Int64($0)) })
    }
}

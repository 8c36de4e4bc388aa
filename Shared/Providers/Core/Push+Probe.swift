package import PushProtocol
import FoundationEssentials

extension Push {
    /// A push without a recipient, which tests whether the provider accepts requests of `route`.
    ///
    /// APNs checks credential and topic, then rejects the token, which it never issued. FCM validates the request and
    /// delivers nothing (`validate_only`). Web Push has no request without a subscription, so its sender checks the app's
    /// key only.
    package static func probe(of route: ProviderRoute, provider: Provider, now: Timestamp) -> Push {
        let id = DerivedID.uuid5(
            DerivedID.namespace, ["probe", provider.rawValue, "\(route)", String(now.milliseconds)])
        let content: Content
        var target = Target(device: id, token: DeviceToken(secret: ""), notification: id, registeredAt: now)
        switch provider {
        case .apns:
            content = Content(silent: true)
            target.token = DeviceToken(secret: String(repeating: "0", count: 64))
        case .fcm:
            content = Content(silent: true, fcm: FCMOverride(validateOnly: true))
            target.token = DeviceToken(secret: "heliograph-probe")
            target.address = .topic
        case .webpush:
            content = Content(title: "probe")
        }
        return Push(
            trace: Trace(id: id, correlation: "probe", causation: "probe"), app: route.app, provider: provider,
            environment: route.environment, lane: .interactive, content: content, expiresAt: now + .seconds(60),
            targets: [target])
    }
}

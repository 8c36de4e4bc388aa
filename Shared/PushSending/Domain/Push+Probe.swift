import FoundationEssentials
package import PushProtocol

extension Push {
    /// A push that reaches nobody, and shows whether a provider takes what a lane sends when no push of its own is there
    /// to show it.
    ///
    /// APNs looks at the credential and the topic, and refuses a token that it never gave out (`push-protocols` A.9). FCM
    /// checks a dry run and delivers nothing (B.2).
    package static func probe(of lane: LaneKey, provider: Provider, now: Timestamp) -> Push {
        let id = DerivedID.uuid5(
            DerivedID.namespace, ["probe", provider.rawValue, "\(lane)", String(now.milliseconds)])
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
        }
        return Push(
            trace: Trace(id: id, correlation: "probe", causation: "probe"), app: lane.app, provider: provider,
            environment: lane.environment, lane: .interactive, content: content, expiresAt: now + .seconds(60),
            targets: [target])
    }
}

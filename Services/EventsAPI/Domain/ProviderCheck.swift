import Providers
import PushProtocol

/// Checks the overrides `apns`, `fcm` and `web` of a direct notification with the encoders of the senders, which would
/// reject them for each device.
enum ProviderCheck {
    /// - Throws: the override that a sender rejects, with the sender's reason.
    static func check(_ notification: DirectNotification, of app: AppID) throws(WireError) {
        for provider in Provider.allCases {
            guard let override = notification.content.override(for: provider) else { continue }
            let preview = PayloadPreview(push(notification.content, by: provider, app), now: now)
            if let reason = preview.rejectionReason {
                throw .invalid(
                    path: "content.\(override)", problem: "the sender refuses this request as \(reason)")
            }
        }
    }

    /// Any time: a push without an expiration does not depend on it.
    private static let now = Timestamp(milliseconds: 0)

    private static func push(_ content: Content, by provider: Provider, _ app: AppID) -> Push {
        let id = DerivedID.namespace
        return Push(
            trace: Trace(id: id, correlation: "check", causation: "check"), app: app, provider: provider,
            environment: .production, lane: .interactive, content: content,
            targets: [
                Push.Target(
                    device: id, token: PayloadPreview.token(for: provider), notification: id, registeredAt: now)
            ])
    }
}

extension Content {
    /// The name of the provider's block, if the content has it.
    fileprivate func override(for provider: Provider) -> String? {
        switch provider {
        case .apns: apns == nil ? nil : "apns"
        case .fcm: fcm == nil ? nil : "fcm"
        case .webpush: web == nil ? nil : "web"
        }
    }
}

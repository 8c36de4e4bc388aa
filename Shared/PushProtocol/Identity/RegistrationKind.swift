/// The purpose of a token. Each capability of an app has its own token, and the provider rejects a token used for
/// another purpose (ProviderFacts.md §A.5, §C.2).
package enum RegistrationKind: String, Codable, Hashable, Sendable, CaseIterable {
    /// APNs: alerts and background notifications.
    case alert
    /// APNs: calls through PushKit.
    case voip
    /// APNs: starts a Live Activity.
    case pushToStart = "push-to-start"
    /// APNs: updates or ends one Live Activity.
    case liveActivity = "live-activity"
    /// APNs: location queries.
    case location
    /// APNs: one joined push-to-talk channel.
    case pushToTalk = "push-to-talk"
    case complication
    case fileProvider = "file-provider"
    case mdm
    case widgets
    case controls
    /// An FCM registration token.
    case fcmToken = "fcm-token"
    /// A Firebase installation ID, used instead of a registration token (ProviderFacts.md §B.2).
    case fid
    /// An FCM registration token of a browser.
    case fcmWeb = "fcm-web"
    /// A Web Push subscription of a browser.
    case webPush = "web-push"

    /// The provider of this kind of token.
    package var provider: Provider {
        switch self {
        case .alert, .voip, .pushToStart, .liveActivity, .location, .pushToTalk, .complication, .fileProvider, .mdm,
            .widgets, .controls:
            .apns
        case .fcmToken, .fid, .fcmWeb: .fcm
        case .webPush: .webpush
        }
    }

    /// The kind of a token whose registration does not state one.
    package static func defaultKind(for provider: Provider) -> RegistrationKind {
        switch provider {
        case .apns: .alert
        case .fcm: .fcmToken
        case .webpush: .webPush
        }
    }
}

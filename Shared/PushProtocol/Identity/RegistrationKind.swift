/// What a token is for: each capability of an app on a device has a token of its own, and a token of one kind is refused
/// for another (`push-protocols` A.5, C.2).
package enum RegistrationKind: String, Codable, Hashable, Sendable, CaseIterable {
    /// APNs: what people see, and background wake-ups.
    case alert
    /// APNs: PushKit calls.
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
    /// A Firebase installation ID, which stands in for the registration token (`push-protocols` B.2).
    case fid
    /// A browser's FCM registration token.
    case fcmWeb = "fcm-web"

    /// Who delivers to it.
    package var provider: Provider {
        switch self {
        case .alert, .voip, .pushToStart, .liveActivity, .location, .pushToTalk, .complication, .fileProvider, .mdm,
            .widgets, .controls:
            .apns
        case .fcmToken, .fid, .fcmWeb: .fcm
        }
    }

    /// What a token is when nobody says.
    package static func usual(of provider: Provider) -> RegistrationKind {
        switch provider {
        case .apns: .alert
        case .fcm: .fcmToken
        }
    }
}

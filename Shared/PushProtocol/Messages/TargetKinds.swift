/// The kinds of registration that one notification may go to. Providers reject a token of another kind, or wake the
/// wrong component of the app (ProviderFacts.md §A.5).
package struct TargetKinds: Hashable, Sendable {
    package let apns: RegistrationKind
    /// Whether FCM registrations are accepted.
    package let includesFCM: Bool
    /// Whether Web Push subscriptions are accepted. A browser shows a notification for every push, so only alerts with a
    /// text fit (decision 135).
    package let includesWebPush: Bool

    /// The kinds for the content's `apns-push-type`. An unknown type selects alert tokens; the sender then reports
    /// the invalid type.
    package init(_ content: Content) {
        let type = content.apns?.headers?.first { $0.key.lowercased() == "apns-push-type" }?.value
        apns = Self.kind(of: type, content)
        includesFCM = content.fcm != nil || !Self.isAppleOnly(apns)
        let hasText = [content.title, content.subtitle, content.body].contains { $0?.isEmpty == false }
        includesWebPush = apns == .alert && !content.silent && (hasText || content.web?.message != nil)
    }

    package func includes(_ kind: RegistrationKind) -> Bool {
        switch kind.provider {
        case .apns: kind == apns
        case .fcm: includesFCM
        case .webpush: includesWebPush
        }
    }

    private static func kind(of pushType: String?, _ content: Content) -> RegistrationKind {
        switch pushType {
        case "voip": .voip
        case "complication": .complication
        case "fileprovider": .fileProvider
        case "mdm": .mdm
        case "liveactivity":
            content.apns?.payload?[path: "aps.event"]?.string == "start" ? .pushToStart : .liveActivity
        case "location": .location
        case "pushtotalk": .pushToTalk
        case "widgets": .widgets
        case "controls": .controls
        default: .alert
        }
    }

    /// Whether the kind's feature exists on Apple devices only. Calls and push-to-talk are also sent to other phones;
    /// widget updates are not.
    private static func isAppleOnly(_ kind: RegistrationKind) -> Bool {
        switch kind {
        case .alert, .voip, .pushToTalk, .fcmToken, .fid, .fcmWeb, .webPush: false
        case .pushToStart, .liveActivity, .location, .complication, .fileProvider, .mdm, .widgets, .controls: true
        }
    }
}

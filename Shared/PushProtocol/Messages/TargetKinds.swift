/// The kinds of registration that one notification may go to. Providers reject a token of another kind, or wake the
/// wrong component of the app (ProviderFacts.md §A.5).
package struct TargetKinds: Hashable, Sendable {
    package let apns: RegistrationKind
    /// Whether FCM registrations are accepted.
    package let includesFCM: Bool

    /// The kinds for the content's `apns-push-type`. An unknown type selects alert tokens; the sender then reports
    /// the invalid type.
    package init(_ content: Content) {
        let type = content.apns?.headers?.first { $0.key.lowercased() == "apns-push-type" }?.value
        apns = Self.kind(of: type, content)
        includesFCM = content.fcm != nil || !Self.isAppleOnly(apns)
    }

    package func includes(_ kind: RegistrationKind) -> Bool {
        switch kind.provider {
        case .apns: kind == apns
        case .fcm: includesFCM
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
        case .alert, .voip, .pushToTalk, .fcmToken, .fid, .fcmWeb: false
        case .pushToStart, .liveActivity, .location, .complication, .fileProvider, .mdm, .widgets, .controls: true
        }
    }
}

/// Which kinds of registration one notification may go to. A token of another kind would be refused, or, worse, would
/// wake what nobody meant to wake (`push-protocols` A.5).
package struct KindSelection: Hashable, Sendable {
    /// The one kind of APNs token.
    package let apns: RegistrationKind
    /// Whether FCM registrations get it too.
    package let includesFCM: Bool

    /// What the content's `apns-push-type` asks for. A word that this build does not know goes to alert tokens, where the
    /// sender says what is wrong with it.
    package init(_ content: Content) {
        let type = content.apns?.headers?.first { $0.key.lowercased() == "apns-push-type" }?.value
        apns = Self.kind(of: type, content)
        includesFCM = content.fcm != nil || !Self.isOfAppleAlone(apns)
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

    /// Whether what the kind is for exists on Apple's devices only. A call or a word on the radio is told to other
    /// phones too, unlike the update of a widget.
    private static func isOfAppleAlone(_ kind: RegistrationKind) -> Bool {
        switch kind {
        case .alert, .voip, .pushToTalk, .fcmToken, .fid, .fcmWeb: false
        case .pushToStart, .liveActivity, .location, .complication, .fileProvider, .mdm, .widgets, .controls: true
        }
    }
}

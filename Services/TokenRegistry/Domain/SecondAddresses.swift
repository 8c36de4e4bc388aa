import PushProtocol

extension [Registration] {
    /// Of an FCM registration token and a FID of the same installation, the one to use: the FID, which replaces tokens,
    /// unless the token was registered a day later or more, by a build that went back to tokens (`push-protocols` C.1).
    var withoutSecondAddresses: [Registration] {
        guard contains(where: { $0.kind == .fid && $0.installation != nil }) else { return self }
        var latest: [InstallationID: [RegistrationKind: Timestamp]] = [:]
        for registration in self {
            guard let installation = registration.installation else { continue }
            let known = latest[installation]?[registration.kind]
            latest[installation, default: [:]][registration.kind] =
                known.map { Swift.max($0, registration.registeredAt) } ?? registration.registeredAt
        }
        return filter { registration in
            guard let times = registration.installation.flatMap({ latest[$0] }), let token = times[.fcmToken],
                let fid = times[.fid]
            else { return true }
            let usesToken = token - fid >= .seconds(86_400)
            return switch registration.kind {
            case .fcmToken: usesToken
            case .fid: !usesToken
            case .alert, .voip, .pushToStart, .liveActivity, .location, .pushToTalk, .complication, .fileProvider,
                .mdm, .widgets, .controls, .fcmWeb:
                true
            }
        }
    }
}

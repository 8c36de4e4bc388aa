import PushProtocol

extension [Registration] {
    /// Selects a FID or a registration token for each installation that has both. The FID is used, with the token as
    /// its fallback. The token is used if it was registered a day or more after the FID, by an app build that returned
    /// to tokens, or if the FID or its cohort is suspended.
    ///
    /// Some clients send a registration token as a FID (firebase-ios-sdk #16429). It is then tried as both.
    func withFallbacks(_ fids: FIDPreference = FIDPreference()) -> [Registration] {
        guard contains(where: { $0.kind == .fid }) else { return self }
        var latest: [InstallationID: [RegistrationKind: Registration]] = [:]
        for registration in self {
            guard let installation = registration.installation else { continue }
            let known = latest[installation]?[registration.kind]
            if known.map({ $0.registeredAt >= registration.registeredAt }) ?? false { continue }
            latest[installation, default: [:]][registration.kind] = registration
        }
        return compactMap { registration in
            let beside = registration.installation.flatMap { latest[$0] }
            switch registration.kind {
            case .fcmToken:
                guard let fid = beside?[.fid] else { return registration }
                return fid.yields(to: registration, fids) ? registration : nil
            case .fid:
                guard let token = beside?[.fcmToken] else { return registration.alone(fids) }
                if (beside?[.fid] ?? registration).yields(to: token, fids) { return nil }
                var fid = registration
                fid.fallback = token.token
                return fid
            case .alert, .voip, .pushToStart, .liveActivity, .location, .pushToTalk, .complication, .fileProvider,
                .mdm, .widgets, .controls, .fcmWeb, .webPush:
                return registration
            }
        }
    }
}

extension Registration {
    /// Whether to use `token` instead of this FID.
    fileprivate func yields(to token: Registration, _ fids: FIDPreference) -> Bool {
        token.registeredAt - registeredAt >= .seconds(86_400) || fids.isSuspended(self)
    }

    /// The FID as used without a token beside it.
    fileprivate func alone(_ fids: FIDPreference) -> Registration {
        guard token.isRegistrationToken else { return self }
        var one = self
        if fids.isSuspended(self) { one.kind = .fcmToken } else { one.fallback = token }
        return one
    }
}

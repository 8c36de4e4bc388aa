import PushProtocol

extension DeviceSelection {
    /// Why a device that fits a notification gets no push; raw values are reasons of outcomes.
    enum Omission: String {
        case otherPlatform = "other-platform"
        case registeredElsewise = "has-other-registration"
    }

    /// Returns the reason to leave a registration out; `nil` if it is selected.
    ///
    /// - Parameter all: all active registrations of the same user.
    func omission(of registration: Registration, among all: [Registration]) -> Omission? {
        if let platforms, !platforms.contains(registration.platform) { return .otherPlatform }
        guard let unless, registration.kind != unless.kind else { return nil }
        let other = all.contains { $0.matches(unless) && $0.isOnDevice(of: registration) }
        return other ? .registeredElsewise : nil
    }
}

extension Registration {
    fileprivate func matches(_ other: DeviceSelection.Registered) -> Bool {
        kind == other.kind && (other.scope == nil || scope == other.scope)
    }

    /// Whether both are tokens of one installation. A registration without an installation counts for every device.
    fileprivate func isOnDevice(of other: Registration) -> Bool {
        guard let mine = installation, let theirs = other.installation else { return true }
        return mine == theirs
    }
}

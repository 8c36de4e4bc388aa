package import FoundationEssentials
package import PushProtocol

extension DeviceEvent {
    /// The event of a user who lost `device`. Revokes pushes addressed from registrations up to `registeredAt`.
    package static func loss(
        of device: UUID, _ provider: Provider = .apns, registeredAt: Timestamp, at: Timestamp = .sample
    ) -> DeviceEvent {
        DeviceEvent(
            trace: Trace(id: UUID(), correlation: "c", causation: "c"), app: AppID(rawValue: "demo")!,
            change: .replaced,
            user: UserID(rawValue: "a")!,
            device: Device(
                id: device, provider: provider, environment: .production,
                kind: RegistrationKind.defaultKind(for: provider), active: false), at: at, revokes: registeredAt)
    }
}

import FoundationEssentials
import PushProtocol

extension ReportEvent {
    /// The report of a device that gets no pushes any more, because its provider reported or dropped its token.
    ///
    /// - Returns: `nil` for any other event.
    init?(_ event: DeviceEvent) {
        guard let device = event.device, !device.active, [.deactivated, .stale].contains(event.change) else {
            return nil
        }
        var data: [String: JSONValue] = [
            "device_id": .string(device.id.uuidString.lowercased()), "user_id": .string(event.user.rawValue),
            "provider": .string(device.provider.rawValue), "environment": .string(device.environment.rawValue),
            "kind": .string(device.kind.rawValue), "change": .string(event.change.rawValue),
            "at": .string(RFC3339.string(from: event.at.date)),
        ]
        data["installation_id"] = device.installation.map { .string($0.rawValue) }
        data["reason"] = event.reason.map(JSONValue.string)
        self.init(
            kind: .deadDevice, id: DerivedID.caused(by: event.trace.id, "report"), source: "/heliograph/token-registry",
            time: event.at, data: .object(data))
    }
}

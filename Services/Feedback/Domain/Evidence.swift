import FoundationEssentials
import PushProtocol

/// A finding as it is kept, when it is time to decide about it.
struct Evidence: Hashable, Sendable {
    /// One notification on one device gets one word from its provider.
    struct Key: Hashable, Sendable {
        var notification: UUID
        var device: UUID
    }

    var key: Key
    var lane: FeedbackRoute
    var verdict: Finding.Verdict
    var reason: String
    var goneSince: Timestamp?
    var registeredAt: Timestamp?
    var observedAt: Timestamp
    /// On how many distinct notifications the registration was suspected, this one included. Of a FID: on how many it was
    /// refused a day before or longer, and within a week.
    var suspicions: Int
    /// The outcomes message that told it, and what that belonged to.
    var trace: Trace

    /// Since when a registration must not have been taken again for the evidence to be about it (`push-protocols` C.3):
    /// the provider's timestamp, else the registration that the push was addressed with.
    var notRegisteredSince: Timestamp { goneSince ?? registeredAt ?? observedAt }

    /// What the registry is asked to do when it is believed. A late one does no harm: it compares before it clears.
    var command: DeviceCommand {
        let command = DeviceCommand.Command.deactivate(
            device: key.device, notRegisteredSince: notRegisteredSince, reason: reason)
        let push = DerivedID.push(notification: key.notification, device: key.device)
        return DeviceCommand(
            trace: trace.next(id: DerivedID.caused(by: push, command.verb.rawValue)), app: lane.app, command: command)
    }
}

extension [Evidence] {
    /// The commands of ``commandsByDevice``.
    var commands: [DeviceCommand] { commandsByDevice.map(\.command) }

    /// One command for each device, the one that reaches furthest.
    var commandsByDevice: [(device: UUID, command: DeviceCommand)] {
        Dictionary(grouping: self, by: \.key.device).values
            .compactMap { $0.max { $0.notRegisteredSince < $1.notRegisteredSince } }
            .sorted { $0.key.device.uuidString < $1.key.device.uuidString }
            .map { ($0.key.device, $0.command) }
    }
}

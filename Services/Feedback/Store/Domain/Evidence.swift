package import FoundationEssentials
package import PushProtocol

/// A stored finding that is due for evaluation.
package struct Evidence: Hashable, Sendable {
    /// A provider reports on each notification and device once.
    package struct Key: Hashable, Sendable {
        package var notification: UUID
        package var device: UUID
    }

    package var key: Key
    package var route: FeedbackRoute
    var verdict: TokenStatement.Verdict
    var reason: String
    var goneSince: Timestamp?
    var registeredAt: Timestamp?
    var observedAt: Timestamp
    /// The number of distinct notifications with a suspect rejection of this registration, this one included.
    ///
    /// For a FID: the number of its rejections between one day and seven days before this one.
    var suspicions: Int
    /// The trace of the outcomes message with this finding.
    var trace: Trace

    /// The evidence applies to registrations up to this time only (ProviderFacts.md §C.3).
    ///
    /// The provider's timestamp, else the registration time in the push, else the time of the observation.
    var notRegisteredSince: Timestamp { goneSince ?? registeredAt ?? observedAt }

    /// The command to the registry if the evidence is approved. It may be repeated: the registry compares the time
    /// before it deactivates.
    var command: DeviceCommand {
        let command = DeviceCommand.Command.deactivate(
            device: key.device, notRegisteredSince: notRegisteredSince, reason: reason)
        let push = DerivedID.push(notification: key.notification, device: key.device)
        return DeviceCommand(
            trace: trace.next(id: DerivedID.caused(by: push, command.verb.rawValue)), app: route.app, command: command)
    }
}

extension [Evidence] {
    var commands: [DeviceCommand] { commandsByDevice.map(\.command) }

    /// One command for each device, with its latest ``Evidence/notRegisteredSince``.
    package var commandsByDevice: [(device: UUID, command: DeviceCommand)] {
        Dictionary(grouping: self, by: \.key.device).values
            .compactMap { $0.max { $0.notRegisteredSince < $1.notRegisteredSince } }
            .sorted { $0.key.device.uuidString < $1.key.device.uuidString }
            .map { ($0.key.device, $0.command) }
    }
}

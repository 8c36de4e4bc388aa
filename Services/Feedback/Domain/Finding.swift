import FoundationEssentials
import PushProtocol

/// What an outcome says about a registration, as opposed to about a message, a credential or the weather.
struct Finding: Hashable, Sendable {
    enum Verdict: String, Sendable {
        /// The provider says that the token is gone.
        case gone
        /// The reason may be about the token, or about our configuration: kept as evidence, acted on by nobody yet.
        case suspect
    }

    var notification: UUID
    var device: UUID
    var app: AppID
    var origin: Outcomes.Origin
    var environment: ProviderEnvironment?
    var verdict: Verdict
    var reason: String
    var goneSince: Timestamp?
    var registeredAt: Timestamp?
    var observedAt: Timestamp

    /// The finding in one outcome of a batch, or `nil` where nothing is said about the registration.
    init?(_ outcome: Outcome, in batch: Outcomes) {
        guard let device = outcome.device else { return nil }
        switch outcome.answer {
        case .unregistered(let since, let reason):
            verdict = .gone
            self.reason = reason
            goneSince = since
        case .rejected(let reason, suspectToken: true):
            verdict = .suspect
            self.reason = reason
            goneSince = nil
        case .rejected(_, suspectToken: false), .accepted, .throttled, .misconfigured, .expired, .skipped, .unknown:
            return nil
        }
        notification = outcome.notification
        self.device = device
        app = batch.app
        origin = batch.origin
        environment = batch.environment
        registeredAt = outcome.registeredAt
        observedAt = outcome.at
    }

    /// What the registry is asked to do about it: deactivate, unless the registration was taken again since.
    ///
    /// With a provider's timestamp, a registration newer than it is kept (`push-protocols` C.3). Without one, a
    /// registration newer than the one that the push was addressed to is kept.
    var command: DeviceCommand.Command? {
        switch verdict {
        case .gone:
            .deactivate(
                device: device, notRegisteredSince: goneSince ?? registeredAt ?? observedAt, reason: reason)
        case .suspect: nil
        }
    }
}

extension Outcomes {
    /// Every finding of the batch, in its order.
    var findings: [Finding] { outcomes.compactMap { Finding($0, in: self) } }

    /// The commands that follow from the findings: one message each, with ids that a redelivery makes again.
    var commands: [DeviceCommand] {
        findings.enumerated().compactMap { index, finding in
            finding.command.map { command in
                DeviceCommand(
                    trace: trace.next(id: DerivedID.caused(by: trace.id, command.verb.rawValue, index: index)),
                    app: app, command: command)
            }
        }
    }
}

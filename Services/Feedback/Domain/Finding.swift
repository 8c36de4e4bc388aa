import FoundationEssentials
import PushProtocol

/// What an outcome says about a registration, as opposed to about a message, a credential or the weather.
struct Finding: Hashable, Sendable {
    enum Verdict: String, Sendable {
        /// The provider says that the token is gone.
        case gone
        /// The reason may be about the token, or about our configuration: it is weighed (``SuspicionRule``).
        case suspect
        /// The other environment took the push: the registration belongs there.
        case misplaced
    }

    var notification: UUID
    var device: UUID
    var lane: FeedbackLane
    var verdict: Verdict
    var reason: String
    var goneSince: Timestamp?
    /// Where the push was accepted, of a misplaced registration.
    var elsewhere: ProviderEnvironment?
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
        case .accepted:
            guard let elsewhere = outcome.elsewhere, elsewhere != batch.environment else { return nil }
            verdict = .misplaced
            reason = "accepted in \(elsewhere.rawValue)"
            self.elsewhere = elsewhere
        case .rejected(_, suspectToken: false), .throttled, .misconfigured, .expired, .skipped, .unknown:
            return nil
        }
        notification = outcome.notification
        self.device = device
        lane = FeedbackLane(app: batch.app, origin: batch.origin, environment: batch.environment)
        registeredAt = outcome.registeredAt
        observedAt = outcome.at
    }

    /// What becomes of it as soon as it is heard of. It is kept either way.
    enum Standing: String, Sendable {
        /// The registration is newer than the provider's word (`push-protocols` C.3): nothing follows.
        case stale
        /// It is judged when the minute it belongs to can be seen as a whole.
        case waiting
        /// Its command goes out at once: a correction takes nothing from anybody.
        case published
    }

    var standing: Standing {
        switch verdict {
        case .misplaced: .published
        case .suspect: .waiting
        case .gone:
            if let goneSince, let registeredAt, registeredAt > goneSince { .stale } else { .waiting }
        }
    }
}

extension Outcomes {
    /// Every finding of the batch, in its order.
    var findings: [Finding] { outcomes.compactMap { Finding($0, in: self) } }

    /// The commands that need no judgement: one message each, with ids that a redelivery makes again.
    var corrections: [DeviceCommand] {
        findings.compactMap { finding in
            guard let environment = finding.elsewhere else { return nil }
            let command = DeviceCommand.Command.correct(device: finding.device, environment: environment)
            let push = DerivedID.push(notification: finding.notification, device: finding.device)
            return DeviceCommand(
                trace: trace.next(id: DerivedID.caused(by: push, command.verb.rawValue)), app: app, command: command)
        }
    }
}

package import PushProtocol
import FoundationEssentials

/// A provider's statement about a registration, derived from an outcome.
struct TokenStatement: Hashable, Sendable {
    enum Verdict: String, Sendable {
        /// The provider reports the token as gone.
        case gone
        /// The rejection is due to the token or to a wrong configuration. ``SuspicionRule`` decides.
        case suspect
        /// The app's other environment accepted the push, so the registration belongs there.
        case misplaced
        /// The provider does not know the FID, and accepted no registration token of the installation.
        /// ``SuspicionRule`` approves it after a second rejection a day or more later.
        case fidGone = "fid-gone"
        /// The provider does not know the FID, but accepted a registration token of the same installation. The device
        /// exists, and the registry marks the FID as suspect.
        case fidContradicted = "fid-contradicted"
    }

    var notification: UUID
    var device: UUID
    var route: FeedbackRoute
    var verdict: Verdict
    var reason: String
    var goneSince: Timestamp?
    /// The environment that accepted the push of a misplaced registration.
    var elsewhere: ProviderEnvironment?
    var registeredAt: Timestamp?
    var observedAt: Timestamp
    /// The owner of an established registration; `nil` for a new registration.
    var owner: UserHash?

    /// Derives the finding from an outcome of `batch`; `nil` if the outcome is not about the registration.
    init?(_ outcome: Outcome, in batch: Outcomes) {
        guard let device = outcome.device else { return nil }
        switch outcome.answer {
        case .unregistered(let since, let reason):
            verdict = outcome.refusedFID == nil ? .gone : .fidGone
            self.reason = reason
            goneSince = since
        case .rejected(let reason, suspectToken: true):
            verdict = .suspect
            self.reason = reason
        case .accepted where outcome.refusedFID != nil:
            verdict = .fidContradicted
            reason = outcome.refusedFID ?? ""
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
        route = FeedbackRoute(app: batch.app, origin: batch.origin, environment: batch.environment)
        registeredAt = outcome.registeredAt
        observedAt = outcome.at
        owner = outcome.owner
    }

    /// The decision with which a finding is stored.
    enum InitialState: String, Sendable {
        /// The registration is newer than the provider's timestamp (ProviderFacts.md §C.3). No command follows.
        case stale
        /// Waits for evaluation, until the reports of its minute have arrived.
        case waiting
        /// Its command is published at once, because it deactivates no registration.
        case published
    }

    var initialState: InitialState {
        switch verdict {
        case .misplaced, .fidContradicted: .published
        case .suspect: .waiting
        case .gone, .fidGone:
            if let goneSince, let registeredAt, registeredAt > goneSince { .stale } else { .waiting }
        }
    }
}

extension Outcomes {
    /// The findings of the batch, in its order.
    var statements: [TokenStatement] { outcomes.compactMap { TokenStatement($0, in: self) } }

    /// The commands that need no evaluation. Their ids are derived, so a redelivery repeats them.
    package var corrections: [DeviceCommand] {
        statements.compactMap { statement in
            guard let command = statement.correction else { return nil }
            let push = DerivedID.push(notification: statement.notification, device: statement.device)
            return DeviceCommand(
                trace: trace.next(id: DerivedID.caused(by: push, command.verb.rawValue)), app: app, command: command)
        }
    }
}

extension TokenStatement {
    /// The command to publish without evaluation, if any.
    fileprivate var correction: DeviceCommand.Command? {
        switch verdict {
        case .misplaced: elsewhere.map { .correct(device: device, environment: $0) }
        case .fidContradicted: .suspect(device: device, at: observedAt, reason: reason)
        case .gone, .suspect, .fidGone: nil
        }
    }
}

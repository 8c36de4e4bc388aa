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
        /// The provider does not know the FID, and no registration token of the installation helped. Believed when it
        /// comes again after a day (``SuspicionRule``).
        case fidGone = "fid-gone"
        /// The provider does not know the FID, and took a registration token of the same installation: the device is
        /// there, and the registry suspects the FID.
        case fidContradicted = "fid-contradicted"
    }

    var notification: UUID
    var device: UUID
    var lane: FeedbackRoute
    var verdict: Verdict
    var reason: String
    var goneSince: Timestamp?
    /// Where the push was accepted, of a misplaced registration.
    var elsewhere: ProviderEnvironment?
    var registeredAt: Timestamp?
    var observedAt: Timestamp
    /// The owner of an established registration; absent for a new one.
    var owner: UserHash?

    /// The finding in one outcome of a batch, or `nil` where nothing is said about the registration.
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
        lane = FeedbackRoute(app: batch.app, origin: batch.origin, environment: batch.environment)
        registeredAt = outcome.registeredAt
        observedAt = outcome.at
        owner = outcome.owner
    }

    /// What becomes of it as soon as it is heard of. It is kept either way.
    enum InitialState: String, Sendable {
        /// The registration is newer than the provider's word (`push-protocols` C.3): nothing follows.
        case stale
        /// It is judged when the minute it belongs to can be seen as a whole.
        case waiting
        /// Its command goes out at once: a correction takes nothing from anybody.
        case published
    }

    var standing: InitialState {
        switch verdict {
        case .misplaced, .fidContradicted: .published
        case .suspect: .waiting
        case .gone, .fidGone:
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
            guard let command = finding.correction else { return nil }
            let push = DerivedID.push(notification: finding.notification, device: finding.device)
            return DeviceCommand(
                trace: trace.next(id: DerivedID.caused(by: push, command.verb.rawValue)), app: app, command: command)
        }
    }
}

extension Finding {
    /// The command that takes nothing from anybody, where the finding leads to one.
    fileprivate var correction: DeviceCommand.Command? {
        switch verdict {
        case .misplaced: elsewhere.map { .correct(device: device, environment: $0) }
        case .fidContradicted: .suspect(device: device, at: observedAt, reason: reason)
        case .gone, .suspect, .fidGone: nil
        }
    }
}

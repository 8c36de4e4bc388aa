import PushProtocol

/// Places a notification by the reports of the stages. Pure.
struct CensusClassifier: Sendable {
    /// The age up to which a notification without an outcome is on the way.
    static let grace = Duration.seconds(15)

    var evidence: CensusEvidence
    var now: Timestamp

    /// The state of an item, and whether it must be looked at again.
    struct Placement: Hashable, Sendable {
        var state: CensusState
        var isOpen: Bool
    }

    func place(_ item: CensusItem, _ trail: CensusTrail) -> Placement {
        if let state = item.state { return placeEvidence(item, state, trail) }
        if item.isDeadRow { return Placement(state: .deadRow, isOpen: true) }
        guard !item.isUnpublished, now - item.decidedAt > Self.grace else {
            return Placement(state: .onTheWay, isOpen: true)
        }
        // Outcomes that rules itself retries or gave up.
        let ends: [(stage: CensusStage, next: CensusStage)] = [(.sender, .outcomes), (.registry, .sender)]
        for (end, stage) in [(CensusStage.outcomes, CensusStage.outcomes)] + ends {
            switch trail.mark(of: end.services) {
            case .settled(let time) where end != .outcomes: return open(item, at: stage, since: time)
            case .retried(let until): return retried(item, at: end, until: until)
            case .deadLettered: return Placement(state: .deadLetter, isOpen: true)
            case .settled, nil: continue
            }
        }
        return open(item, at: .registry, since: item.decidedAt)
    }

    /// Waits for the return from a retry level, and for one more report after it.
    private func retried(_ item: CensusItem, at stage: CensusStage, until: Timestamp) -> Placement {
        guard until + Self.grace < now else { return Placement(state: .retrying, isOpen: true) }
        return open(item, at: stage, since: until + Self.grace)
    }

    private func open(_ item: CensusItem, at stage: CensusStage, since time: Timestamp) -> Placement {
        Placement(state: isMissing(item, at: stage, since: time) ? stage.missing : stage.waiting, isOpen: true)
    }

    private func placeEvidence(_ item: CensusItem, _ state: CensusState, _ trail: CensusTrail) -> Placement {
        switch trail.mark(of: CensusStage.feedback.services) {
        case .settled, .deadLettered: return Placement(state: state, isOpen: false)
        case .retried(let until) where until + Self.grace >= now: return Placement(state: state, isOpen: true)
        case .retried, nil: break
        }
        // The outcome's time is the sender's; rules may have it before the sender's report.
        guard let time = item.evidenceAt, now - time > Self.grace,
            isMissing(item, at: .feedback, since: time + CensusEvidence.clockTolerance)
        else { return Placement(state: state, isOpen: true) }
        // Feedback has no later stage, so nothing shows whether it had the outcome.
        guard !evidence.hasLostReport(of: CensusStage.feedback.services, since: time) else {
            return Placement(state: state, isOpen: false)
        }
        return Placement(state: .missingFeedback, isOpen: true)
    }

    /// Whether a notification that was found missing still is. It stays so until it has an outcome, or until feedback
    /// reports it: a sender without the broker publishes an outcome later than its time says.
    func isStillMissing(_ gap: CensusState, _ trail: CensusTrail) -> Bool {
        guard gap == .missingFeedback else { return true }
        switch trail.mark(of: CensusStage.feedback.services) {
        case .settled, .deadLettered: return false
        case .retried, nil: return true
        }
    }

    /// After a process ended without its last report, the notification may have passed the stage. It is missing only
    /// if the later stages do not have it either.
    private func isMissing(_ item: CensusItem, at stage: CensusStage, since time: Timestamp) -> Bool {
        guard evidence.isNowhere(in: stage.passages(of: item.app), since: time) else { return false }
        guard stage < .outcomes, evidence.hasLostReport(of: stage.services, since: time) else { return true }
        let later = CensusStage.allCases.filter { $0 > stage && $0 <= .outcomes }
        return evidence.isNowhere(in: later.flatMap { $0.passages(of: item.app) }, since: time)
    }
}

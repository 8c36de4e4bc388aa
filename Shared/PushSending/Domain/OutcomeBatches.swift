import FoundationEssentials
import PushProtocol

/// How the outcomes of a push's targets travel: one message for each disposition, and one for what was accepted
/// elsewhere.
struct OutcomeBatches {
    private struct Kind: Hashable, Comparable {
        let disposition: Outcome.Answer.Disposition
        let isElsewhere: Bool

        init(_ outcome: Outcome) {
            disposition = outcome.answer.disposition
            isElsewhere = outcome.elsewhere != nil
        }

        static func < (a: Kind, b: Kind) -> Bool {
            a.disposition == b.disposition ? !a.isElsewhere && b.isElsewhere : a.disposition < b.disposition
        }

        var word: String { isElsewhere ? "outcomes.elsewhere" : disposition.rawValue }

        func routingKey(_ origin: Outcomes.Origin) -> String {
            isElsewhere ? RoutingKey.acceptedElsewhere(origin) : RoutingKey.outcomes(origin, disposition)
        }

        /// Whether it may be evidence against tokens, which is weighed by how the lane fares.
        var isEvidence: Bool {
            switch disposition {
            case .unregistered, .rejected: true
            case .accepted, .throttled, .misconfigured, .expired, .skipped, .unknown: false
            }
        }
    }

    /// Batches `outcomes` of `push`, in a stable order.
    ///
    /// A batch's id follows from the push and from which targets it speaks of, so that a redelivery that settles the
    /// same targets makes the same message, and one that settles others makes another.
    static func messages(
        _ outcomes: [Outcome], of push: Push, pulse: LanePulse? = nil
    ) -> [(routingKey: String, outcomes: Outcomes)] {
        let origin = Outcomes.Origin(push.provider)
        return groups(outcomes).map { kind, outcomes in
            let id = DerivedID.uuid5(push.trace.id, kind.word, ids: outcomes.compactMap(\.device))
            return (
                kind.routingKey(origin),
                Outcomes(
                    trace: push.trace.next(id: id), app: push.app, origin: origin, environment: push.environment,
                    lane: push.lane, pulse: kind.isEvidence ? pulse : nil, outcomes: outcomes)
            )
        }
    }

    private static func groups(_ outcomes: [Outcome]) -> [(Kind, [Outcome])] {
        guard let first = outcomes.first.map(Kind.init) else { return [] }
        // Most pushes have outcomes of one kind.
        if outcomes.allSatisfy({ Kind($0) == first }) { return [(first, outcomes)] }
        return Dictionary(grouping: outcomes, by: Kind.init).sorted { $0.key < $1.key }
    }
}

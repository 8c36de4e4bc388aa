import FoundationEssentials
import Messaging
import PushProtocol

/// How the outcomes of pushes that were handled together travel: what was accepted in as few messages as hold it, since
/// that is nearly everything and each message costs the broker a write; of all else one message for each push and
/// disposition, and one for what was accepted elsewhere.
struct OutcomeBatches {
    /// One message, and the places of the pushes that it speaks of.
    struct Batch {
        let places: [Int]
        let routingKey: String
        let outcomes: Outcomes
    }

    /// The messages that tell all of `settled`, which are outcomes of `pushes` in their order, of one lane. In a stable
    /// order.
    ///
    /// - Parameters:
    ///   - settled: as ``TargetOutcomes/divided`` divides them.
    ///   - pulses: how the lane fares, for outcomes that are evidence, by the place of the push.
    static func batches(
        _ settled: (accepted: TargetOutcomes, others: TargetOutcomes), of pushes: [Delivery<Push>],
        pulses: [Int: LanePulse] = [:]
    ) -> [Batch] {
        let (accepted, others) = settled
        var batches: [Batch] = []
        for run in others.runs(ofAtMost: 1) {
            let place = others.places[run.lowerBound]
            for (routingKey, outcomes) in messages(
                Array(others.outcomes[run]), of: pushes[place].message, pulse: pulses[place])
            {
                batches.append(Batch(places: [place], routingKey: routingKey, outcomes: outcomes))
            }
        }
        for run in accepted.runs(ofAtMost: Push.maximumTargets) {
            batches.append(acceptances(accepted, run, of: pushes))
        }
        return batches
    }

    /// Acceptances that leave together: the message is the effect of the first of their pushes in the eyes of who follows
    /// a trace, and its id follows from the other pushes and the devices.
    private static func acceptances(
        _ accepted: TargetOutcomes, _ run: Range<Int>, of pushes: [Delivery<Push>]
    ) -> Batch {
        let first = pushes[accepted.places[run.lowerBound]].message
        var places: [Int] = []
        var ids: [UUID] = []
        places.reserveCapacity(run.count)
        ids.reserveCapacity(2 * run.count)
        for index in run {
            let place = accepted.places[index]
            if places.last != place {
                if !places.isEmpty { ids.append(pushes[place].message.trace.id) }
                places.append(place)
            }
            if let device = accepted.outcomes[index].device { ids.append(device) }
        }
        let origin = Outcomes.Origin(first.provider)
        let id = DerivedID.uuid5(first.trace.id, Outcome.Answer.Disposition.accepted.rawValue, ids: ids)
        return Batch(
            places: places, routingKey: RoutingKey.outcomes(origin, .accepted),
            outcomes: Outcomes(
                trace: first.trace.next(id: id), app: first.app, origin: origin, environment: first.environment,
                lane: first.lane, outcomes: accepted.told(run)))
    }

    private struct Kind: Hashable, Comparable {
        let disposition: Outcome.Answer.Disposition
        let isElsewhere: Bool

        init(_ outcome: Outcome) {
            disposition = outcome.answer.disposition
            // By another environment, or by another address of the device.
            isElsewhere = disposition == .accepted && !outcome.isPlainlyAccepted
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

extension TargetOutcomes {
    /// A run of acceptances as they are told: without what only evidence needs, and as of the moment that the last was
    /// known. That makes a table of them.
    fileprivate func told(_ run: Range<Int>) -> [Outcome] {
        var told = Array(outcomes[run])
        guard let last = told.lazy.map(\.at).max() else { return told }
        for place in told.indices {
            told[place].at = last
            told[place].registeredAt = nil
        }
        return told
    }
}

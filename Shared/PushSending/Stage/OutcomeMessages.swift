import FoundationEssentials
import Messaging
import PushProtocol

/// Groups the outcomes of a batch into messages.
///
/// Plain acceptances share as few messages as possible, since they are most outcomes and each message costs the broker
/// a write. Other outcomes get one message for each push and disposition.
struct OutcomeMessages {
    /// One message, and the indices of its pushes.
    struct OutcomeMessage {
        let pushIndices: [Int]
        let routingKey: String
        let outcomes: Outcomes
    }

    /// The messages with all outcomes of `settled`, in a stable order.
    ///
    /// - Parameters:
    ///   - settled: ``TargetOutcomes/partitioned``, sorted by push.
    ///   - healthByPush: the route's health for outcomes that are evidence, by push index.
    static func messages(
        _ settled: (accepted: TargetOutcomes, others: TargetOutcomes), of pushes: [Delivery<Push>],
        healthByPush: [Int: RouteHealth] = [:]
    ) -> [OutcomeMessage] {
        let (accepted, others) = settled
        var result: [OutcomeMessage] = []
        for chunk in others.chunks(ofAtMost: 1) {
            let pushIndex = others.pushIndices[chunk.lowerBound]
            for (routingKey, outcomes) in messages(
                Array(others.outcomes[chunk]), of: pushes[pushIndex].message, health: healthByPush[pushIndex])
            {
                result.append(OutcomeMessage(pushIndices: [pushIndex], routingKey: routingKey, outcomes: outcomes))
            }
        }
        for chunk in accepted.chunks(ofAtMost: Push.maximumTargets) {
            result.append(acceptances(accepted, chunk, of: pushes))
        }
        return result
    }

    /// One message of acceptances. Its trace continues the first push; its id derives from all pushes and devices.
    private static func acceptances(
        _ accepted: TargetOutcomes, _ chunk: Range<Int>, of pushes: [Delivery<Push>]
    ) -> OutcomeMessage {
        let first = pushes[accepted.pushIndices[chunk.lowerBound]].message
        var pushIndices: [Int] = []
        var ids: [UUID] = []
        pushIndices.reserveCapacity(chunk.count)
        ids.reserveCapacity(2 * chunk.count)
        for index in chunk {
            let pushIndex = accepted.pushIndices[index]
            if pushIndices.last != pushIndex {
                if !pushIndices.isEmpty { ids.append(pushes[pushIndex].message.trace.id) }
                pushIndices.append(pushIndex)
            }
            if let device = accepted.outcomes[index].device { ids.append(device) }
        }
        let origin = Outcomes.Origin(first.provider)
        let id = DerivedID.uuid5(first.trace.id, Outcome.Answer.Disposition.accepted.rawValue, ids: ids)
        return OutcomeMessage(
            pushIndices: pushIndices, routingKey: RoutingKey.outcomes(origin, .accepted),
            outcomes: Outcomes(
                trace: first.trace.next(id: id), app: first.app, origin: origin, environment: first.environment,
                lane: first.lane, outcomes: accepted.compacted(chunk)))
    }

    private struct MessageKind: Hashable, Comparable {
        let disposition: Outcome.Answer.Disposition
        let isElsewhere: Bool

        init(_ outcome: Outcome) {
            disposition = outcome.answer.disposition
            // Accepted in another environment, or for the fallback token.
            isElsewhere = disposition == .accepted && !outcome.isAcceptedAsAddressed
        }

        static func < (a: MessageKind, b: MessageKind) -> Bool {
            a.disposition == b.disposition ? !a.isElsewhere && b.isElsewhere : a.disposition < b.disposition
        }

        var word: String { isElsewhere ? "outcomes.elsewhere" : disposition.rawValue }

        func routingKey(_ origin: Outcomes.Origin) -> String {
            isElsewhere ? RoutingKey.acceptedInOtherEnvironment(origin) : RoutingKey.outcomes(origin, disposition)
        }

        /// Whether the outcomes may be evidence against tokens, for which feedback needs the route's health.
        var isEvidence: Bool {
            switch disposition {
            case .unregistered, .rejected: true
            case .accepted, .throttled, .misconfigured, .expired, .skipped, .unknown: false
            }
        }
    }

    /// The messages with `outcomes` of `push`, in a stable order.
    ///
    /// A message's id derives from the push and its targets. So a redelivery with the same targets makes the same
    /// message, and one with other targets another.
    static func messages(
        _ outcomes: [Outcome], of push: Push, health: RouteHealth? = nil
    ) -> [(routingKey: String, outcomes: Outcomes)] {
        let origin = Outcomes.Origin(push.provider)
        return groups(outcomes).map { kind, outcomes in
            let id = DerivedID.uuid5(push.trace.id, kind.word, ids: outcomes.compactMap(\.device))
            return (
                kind.routingKey(origin),
                Outcomes(
                    trace: push.trace.next(id: id), app: push.app, origin: origin, environment: push.environment,
                    lane: push.lane, routeHealth: kind.isEvidence ? health : nil, outcomes: outcomes)
            )
        }
    }

    private static func groups(_ outcomes: [Outcome]) -> [(MessageKind, [Outcome])] {
        guard let first = outcomes.first.map(MessageKind.init) else { return [] }
        // Most pushes have outcomes of one kind.
        if outcomes.allSatisfy({ MessageKind($0) == first }) { return [(first, outcomes)] }
        return Dictionary(grouping: outcomes, by: MessageKind.init).sorted { $0.key < $1.key }
    }
}

extension TargetOutcomes {
    /// A chunk of acceptances, all with the time of the last and without registration times.
    ///
    /// Only evidence needs registration times, and equal times let the message encode a table.
    fileprivate func compacted(_ chunk: Range<Int>) -> [Outcome] {
        var compacted = Array(outcomes[chunk])
        guard let last = compacted.lazy.map(\.at).max() else { return compacted }
        for pushIndex in compacted.indices {
            compacted[pushIndex].at = last
            compacted[pushIndex].registeredAt = nil
        }
        return compacted
    }
}

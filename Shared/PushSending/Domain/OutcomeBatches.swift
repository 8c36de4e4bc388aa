import FoundationEssentials
import PushProtocol

/// How the outcomes of a push's targets travel: one message for each disposition.
enum OutcomeBatches {
    /// Batches `outcomes` of `push` by disposition, in a stable order.
    ///
    /// A batch's id follows from the push and from which targets it speaks of, so that a redelivery that settles the
    /// same targets makes the same message, and one that settles others makes another.
    static func messages(_ outcomes: [Outcome], of push: Push) -> [(Outcome.Answer.Disposition, Outcomes)] {
        Dictionary(grouping: outcomes, by: \.answer.disposition).sorted { $0.key < $1.key }
            .map { disposition, outcomes in
                let targets = outcomes.compactMap { $0.device?.uuidString }
                let id = DerivedID.uuid5(push.trace.id, ["outcomes", disposition.rawValue] + targets)
                return (
                    disposition,
                    Outcomes(
                        trace: push.trace.next(id: id), app: push.app, origin: Outcomes.Origin(push.provider),
                        environment: push.environment, lane: push.lane, outcomes: outcomes)
                )
            }
    }
}

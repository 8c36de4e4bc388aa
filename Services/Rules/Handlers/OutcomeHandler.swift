import Messaging
import PushProtocol

/// Keeps what became of every notification: evidence that it was published, and the end of its story.
struct OutcomeHandler: StageHandler {
    let store: OutcomeStore

    func decode(_ inbound: Inbound) throws(WireError) -> Outcomes {
        let outcomes = try Outcomes.decode(wireBody: inbound.body)
        try outcomes.check(routingKey: inbound.routingKey)
        return outcomes
    }

    func handle(_ batch: [Delivery<Outcomes>]) async throws -> [Verdict] {
        try await store.keep(batch.map(\.message))
        return batch.map { _ in .done }
    }
}

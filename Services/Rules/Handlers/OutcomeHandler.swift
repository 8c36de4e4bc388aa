import FoundationEssentials
import Messaging
import PushProtocol

/// Stores the outcomes of notifications. An outcome also proves that its notification was published.
struct OutcomeHandler: StageHandler {
    let store: OutcomeStore
    /// The time that processes share (``DatabaseClock``).
    let now: @Sendable () async throws -> Timestamp

    func decode(_ inbound: Inbound) throws(WireError) -> Outcomes {
        let outcomes = try Outcomes.decode(wireBody: inbound.body)
        try outcomes.check(routingKey: inbound.routingKey)
        return outcomes
    }

    /// Only outcomes that wait or are dead-lettered; stored ones are in the decision log.
    func collectNotifications(of outcomes: Outcomes, isDone: Bool, into notifications: inout [UUID]) {
        guard !isDone else { return }
        for outcome in outcomes.outcomes { notifications.append(outcome.notification) }
    }

    func handle(_ batch: [Delivery<Outcomes>]) async throws -> [Verdict] {
        let now = try await now()
        try await MessageSpan.share(
            [MessageSpan](of: batch), "store outcomes", isRequest: true, ["db.system.name": "postgresql"]
        ) {
            try await store.keep(batch.map(\.message), now: now)
        }
        return batch.map { _ in .done }
    }
}

import FeedbackStore
import FoundationEssentials
import Messaging
import PushProtocol
import ServiceConnections

/// Stores statements as evidence for ``EvidenceEvaluator``. Publishes commands that need no evaluation at once.
struct OutcomeHandler: StageHandler {
    private let store: EvidenceStore

    init(store: EvidenceStore) { self.store = store }

    func decode(_ inbound: Inbound) throws(WireError) -> Outcomes {
        let outcomes = try Outcomes.decode(wireBody: inbound.body)
        try outcomes.check(routingKey: inbound.routingKey)
        return outcomes
    }

    /// Only reports against tokens; the census does not follow the others to feedback.
    func collectNotifications(of outcomes: Outcomes, isDone: Bool, into notifications: inout [UUID]) {
        for outcome in outcomes.outcomes {
            switch outcome.answer.disposition {
            case .unregistered, .rejected: notifications.append(outcome.notification)
            case .accepted, .throttled, .misconfigured, .expired, .skipped, .unknown: continue
            }
        }
    }

    func handle(_ batch: [Delivery<Outcomes>]) async throws -> [Verdict] {
        // Evidence keeps the trace, which the later command continues.
        let messages = batch.map { delivery in
            var outcomes = delivery.message
            outcomes.trace.traceparent = delivery.traceparent ?? outcomes.trace.traceparent
            return outcomes
        }
        try await MessageSpan.share(
            [MessageSpan](of: batch), "store evidence", isRequest: true, ["db.system.name": "postgresql"]
        ) {
            try await Outage.ofDatabase { try await store.record(messages) }
        }
        return try messages.map { outcomes in
            .done(
                try outcomes.corrections.map { command in
                    try Outbound(command, to: .devices, routingKey: command.routingKey)
                })
        }
    }
}

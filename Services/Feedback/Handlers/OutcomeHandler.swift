import Messaging
import PushProtocol
import ServiceKit

/// Outcomes that are not acceptances in, device commands out. The evidence is kept before anything is asked for.
struct OutcomeHandler: StageHandler {
    private let store: EvidenceStore

    init(store: EvidenceStore) { self.store = store }

    func decode(_ inbound: Inbound) throws(WireError) -> Outcomes {
        try Outcomes.decode(wireBody: inbound.body)
    }

    func handle(_ batch: [Delivery<Outcomes>]) async throws -> [Verdict] {
        try await Outage.ofDatabase { try await store.record(batch.flatMap(\.message.findings)) }
        return try batch.map { delivery in
            .done(
                try delivery.message.commands.map { command in
                    try Outbound(command, to: .devices, routingKey: command.routingKey)
                })
        }
    }
}

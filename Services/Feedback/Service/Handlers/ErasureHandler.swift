import FeedbackStore
import Messaging
import Metrics
import PushProtocol
import ServiceConnections

/// Deletes the evidence about registrations of erased users.
struct ErasureHandler: StageHandler {
    private let store: ErasureStore

    init(store: ErasureStore) { self.store = store }

    func decode(_ inbound: Inbound) throws(WireError) -> DeviceEvent {
        let event = try DeviceEvent.decode(wireBody: inbound.body)
        try event.check(routingKey: inbound.routingKey)
        return event
    }

    func handle(_ batch: [Delivery<DeviceEvent>]) async throws -> [Verdict] {
        let erasures = batch.map(\.message).compactMap(ErasureStore.Erasure.init)
        let count = try await Outage.ofDatabase { try await store.erase(erasures) }
        if count > 0 { Counter(label: "heliograph_feedback_erased_evidence_total").increment(by: count) }
        return batch.map { _ in .done }
    }
}

extension ErasureStore.Erasure {
    /// `nil` if the event is not the erasure of a registration.
    init?(_ event: DeviceEvent) {
        guard event.change == .erased, let device = event.device?.id else { return nil }
        // Older registries send no `revokes`; the event's time replaces it.
        self.init(device: device, revokes: event.revokes ?? event.at, at: event.at)
    }
}

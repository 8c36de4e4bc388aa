import Messaging
import Metrics
import PushProtocol
import RuleEngine

/// Deletes the data of users whom the registry has erased.
struct ErasureHandler: StageHandler {
    let store: ErasureStore
    /// The time that processes share (``DatabaseClock``).
    let now: @Sendable () async throws -> Timestamp

    func decode(_ inbound: Inbound) throws(WireError) -> DeviceEvent {
        let event = try DeviceEvent.decode(wireBody: inbound.body)
        try event.check(routingKey: inbound.routingKey)
        return event
    }

    func handle(_ batch: [Delivery<DeviceEvent>]) async throws -> [Verdict] {
        for event in batch.map(\.message) where event.change == .userErased {
            if try await store.erase(PersonKey(app: event.app, user: event.user), at: event.at, now: try await now()) {
                Counter(
                    label: "heliograph_rules_erased_people_total", dimensions: [("app", event.app.rawValue)]
                ).increment()
            }
        }
        return batch.map { _ in .done }
    }
}

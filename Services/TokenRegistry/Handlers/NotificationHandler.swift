import Messaging
import PushProtocol
import FoundationEssentials
import ServiceKit

/// Notifications to users in, pushes to devices out: one query a batch.
struct NotificationHandler: StageHandler {
    private let store: RegistrationStore
    private let now: @Sendable () -> Timestamp

    init(store: RegistrationStore, now: @escaping @Sendable () -> Timestamp = { .now }) {
        self.store = store
        self.now = now
    }

    func decode(_ inbound: Inbound) throws(WireError) -> PushProtocol.Notification {
        try PushProtocol.Notification.decode(wireBody: inbound.body)
    }

    func handle(_ batch: [Delivery<PushProtocol.Notification>]) async throws -> [Verdict] {
        let users = Set(
            batch.flatMap { delivery in
                delivery.message.recipients.map { AppUser(app: delivery.message.app, user: $0.user) }
            })
        let devices = try await Outage.ofDatabase { try await store.devices(of: users) }
        let now = now()
        return try batch.map { delivery in
            let plan = PushPlan(delivery.message, devices: devices, now: now)
            return Verdict.done(try plan.outbound())
        }
    }
}

extension PushPlan {
    /// The plan as messages for the bus, each with the routing key its exchange expects.
    func outbound() throws(WireError) -> [Outbound] {
        var messages: [Outbound] = []
        for push in pushes {
            let key = RoutingKey.push(push.provider, push.lane, push.app)
            messages.append(try Outbound(push, to: .pushes, routingKey: key))
        }
        for batch in outcomes {
            guard let disposition = batch.outcomes.first?.answer.disposition else { continue }
            let key = RoutingKey.outcomes(batch.origin, disposition)
            messages.append(try Outbound(batch, to: .outcomes, routingKey: key))
        }
        return messages
    }
}

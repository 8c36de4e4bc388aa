import FoundationEssentials
import Messaging
import PushProtocol
import RegistryStore
import ServiceConnections
import ServiceKit

/// Resolves notifications to users into pushes to devices. Opens a campaign for a notification to an audience. Stores the
/// newest state of Live Activities for phones that have not reported their token.
struct NotificationHandler: StageHandler {
    private let store: RegistrationStore
    private let campaigns: CampaignStore
    private let liveStates: LiveStateStore
    private let apps: ActiveApps
    private let bulkThrottle: BulkThrottle
    private let fids: @Sendable () -> FIDPreference
    private let now: @Sendable () -> Timestamp

    /// - Parameter apps: the apps in service. A campaign of another app would have no queue.
    init(
        store: RegistrationStore, campaigns: CampaignStore, apps: ActiveApps,
        bulkThrottle: BulkThrottle = BulkThrottle(),
        fids: @escaping @Sendable () -> FIDPreference = { FIDPreference() },
        now: @escaping @Sendable () -> Timestamp = { .now }
    ) {
        self.store = store
        self.campaigns = campaigns
        liveStates = LiveStateStore(store.database)
        self.apps = apps
        self.bulkThrottle = bulkThrottle
        self.fids = fids
        self.now = now
    }

    func decode(_ inbound: Inbound) throws(WireError) -> PushProtocol.Notification {
        let notification = try PushProtocol.Notification.decode(wireBody: inbound.body)
        try notification.check(routingKey: inbound.routingKey)
        return notification
    }

    /// An audience has no recipients here; its campaign accounts for them.
    func collectNotifications(
        of notification: PushProtocol.Notification, isDone: Bool, into notifications: inout [UUID]
    ) {
        for recipient in notification.recipients { notifications.append(recipient.notification) }
        if let broadcast = notification.broadcast { notifications.append(broadcast.notification) }
    }

    func handle(_ batch: [Delivery<PushProtocol.Notification>]) async throws -> [Verdict] {
        let recipients = BatchRecipients(of: batch.map(\.message))
        var devices = try await MessageSpan.share(
            [MessageSpan](of: batch), "look up devices", isRequest: true, ["db.system.name": "postgresql"]
        ) {
            try await Outage.ofDatabase { try await store.devices(of: recipients.users) }
        }
        try await keepLiveStates(batch.map(\.message), recipients, &devices)
        let (now, fids) = (now(), fids())
        var verdicts: [Verdict] = []
        for (delivery, places) in zip(batch, recipients.places) {
            bulkThrottle.noteTraffic(on: delivery.message.lane)
            if let audience = delivery.message.audience {
                verdicts.append(try await open(delivery.message, to: audience))
            } else {
                let plan = PushPlan(delivery.message, devices: places.map { devices[$0] }, now: now, fids: fids)
                delivery.span?.describe(plan)
                verdicts.append(Verdict.done(try plan.outbound(arrivedAt: delivery.inbound.arrivedAt)))
            }
        }
        return verdicts
    }

    /// Stores the states that phones may ask for later, and then reads the registrations of their users again: a token that
    /// was reported meanwhile is found here or by ``LateActivityWorker``.
    private func keepLiveStates(
        _ notifications: [PushProtocol.Notification], _ recipients: BatchRecipients, _ devices: inout [[Registration]]
    ) async throws {
        let states = zip(notifications, recipients.places).flatMap { notification, places in
            LiveState.all(in: notification, devices: places.map { devices[$0] })
        }
        guard !states.isEmpty else { return }
        let awaited = Set(states.filter(\.isAwaited).map(\.user))
        let places = recipients.users.indices.filter { awaited.contains(recipients.users[$0]) }
        let fresh = try await Outage.ofDatabase {
            try await liveStates.keep(states)
            return try await store.devices(of: places.map { recipients.users[$0] })
        }
        for (place, registrations) in zip(places, fresh) { devices[place] = registrations }
    }

    private func open(_ notification: PushProtocol.Notification, to audience: Audience) async throws -> Verdict {
        guard apps.contains(notification.app) else { return .unknownApp(notification.app) }
        do {
            let cursors = try await Outage.ofDatabase { try await campaigns.open(notification, to: audience) }
            return .done(
                try cursors.map { try Outbound($0, to: .devices, routingKey: RoutingKey.campaignCursor) })
        } catch let conflict as CampaignConflict {
            return Verdict(.deadLetter(Reason(code: "campaign-conflict", detail: conflict.description)))
        }
    }
}

extension MessageSpan {
    /// Sets the numbers of pushes and targets, and of recipients without a suitable device.
    fileprivate func describe(_ plan: PushPlan) {
        set("heliograph.pushes", .number(plan.pushes.count))
        set("heliograph.targets", .number(plan.pushes.reduce(0) { $0 + $1.targets.count }))
        set("heliograph.skipped", .number(plan.outcomes.reduce(0) { $0 + $1.outcomes.count }))
    }
}

extension PushPlan {
    /// The plan's messages for the bus, with their routing keys.
    func outbound(arrivedAt: Timestamp? = nil) throws(WireError) -> [Outbound] {
        var messages: [Outbound] = []
        for push in pushes {
            let key = RoutingKey.push(push.provider, push.lane, push.app)
            messages.append(try Outbound(push, to: .pushes, routingKey: key, arrivedAt: arrivedAt))
        }
        for batch in outcomes {
            guard let disposition = batch.outcomes.first?.answer.disposition else { continue }
            let key = RoutingKey.outcomes(batch.origin, disposition)
            messages.append(try Outbound(batch, to: .outcomes, routingKey: key))
        }
        return messages
    }
}

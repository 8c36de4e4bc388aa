import AMQP
import FoundationEssentials
import Logging
import Messaging
import Metrics
import PushProtocol
import RuleEngine
import RuleLanguage
import ServiceKit
import ServiceLifecycle

/// Decides held notifications when they are due, and publishes the released ones.
///
/// Any number of processes may run it. After a crash another process publishes them again under the same ids. Runs
/// until graceful shutdown.
struct ScheduledSendWorker: Service {
    /// The polling interval when nothing is due.
    static let pace = Duration.milliseconds(500)

    let service: String
    let store: HeldStore
    let currentRules: CurrentRules
    let bus: any MessageBus
    let bulkThrottle: BulkThrottle
    /// The time that processes share (``DatabaseClock``).
    let now: @Sendable () async throws -> Timestamp
    let logger: Logger

    func run() async throws {
        await PeriodicTask(
            every: Self.pace, failureMessage: "Cannot release held notifications; retrying",
            recoveryMessage: "Releasing held notifications again", logger: logger
        ).run { try await releaseDue() }
    }

    func releaseDue() async throws {
        while true {
            let begun = ContinuousClock.now
            let most = bulkThrottle.stepSize(HeldStore.batch, throttled: HeldStore.smallBatch)
            let (released, taken) = try await store.release(by: currentRules.ruleSets, most: most, now: try await now())
            try await publish(released)
            guard taken == most, !Task.isCancelled else { return }
            try await Task.sleep(for: bulkThrottle.pause(after: .now - begun))
        }
    }

    private func publish(_ released: [HeldItem]) async throws {
        var parcels: [Parcel] = []
        var messages: [AMQPMessage] = []
        for parcel in Parcel.parcels(released) {
            let app = parcel.notification.app
            do throws(WireError) {
                messages.append(
                    try Outbound(
                        parcel.notification, to: .notifications,
                        routingKey: RoutingKey.notification(parcel.notification.lane, app), arrivedAt: parcel.dueAt
                    ).message(from: service))
                parcels.append(parcel)
            } catch {
                try await store.markDead(parcel.notification.notificationIDs, of: app)
            }
        }
        var published: [UUID] = []
        let answers = try await bus.post(messages, kind: "A notification", logger: logger)
        for (parcel, answer) in zip(parcels, answers) {
            let notifications = parcel.notification.notificationIDs
            switch answer {
            case .confirmed:
                published += notifications
                parcel.count()
            case .retry: continue
            case .refused: try await store.markDead(notifications, of: parcel.notification.app)
            }
        }
        try await store.forget(published)
    }

    /// One message with the released recipients of one rendered notification.
    struct Parcel {
        var notification: Notification
        /// When the first of its recipients' notifications was due.
        var dueAt: Timestamp?

        static func parcels(_ released: [HeldItem]) -> [Parcel] {
            struct Key: Hashable {
                var rendered: UUID
                var isQuiet: Bool
            }
            let groups = Dictionary(grouping: released) { Key(rendered: $0.rendered.id, isQuiet: $0.isQuiet) }
            return groups.values.flatMap { group -> [Parcel] in
                let dueAt = group.compactMap(\.wasDueAt).min()
                return group[0].rendered.notifications(to: group.map(\.recipient), quietly: group[0].isQuiet) {
                    _, recipients in
                    DerivedID.uuid5(group[0].rendered.id, "release", ids: recipients.map(\.notification))
                }.map { Parcel(notification: $0, dueAt: dueAt) }
            }
        }

        func count() {
            Counter(
                label: "heliograph_rules_released_users_total",
                dimensions: [("app", notification.app.rawValue), ("rule", notification.rule)]
            ).increment(by: notification.notificationIDs.count)
        }
    }
}

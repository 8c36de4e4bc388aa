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

/// Corrects the badge on all devices of a user, by a push that changes the number only.
///
/// A correction follows a read on one device, or the deletion of old unread items. Reads in quick succession share one
/// push. Any number of processes may run it. Runs until graceful shutdown.
struct BadgeCorrector: Service {
    /// The polling interval when nothing is due.
    static let pace = Duration.milliseconds(500)

    let service: String
    let store: BadgeStore
    let currentRules: CurrentRules
    let bus: any MessageBus
    /// The time that processes share (``DatabaseClock``).
    let now: @Sendable () async throws -> Timestamp
    let logger: Logger

    func run() async throws {
        await PeriodicTask(
            every: Self.pace, failureMessage: "Cannot correct badges; retrying",
            recoveryMessage: "Correcting badges again", logger: logger
        ).run { try await correctDue() }
    }

    func correctDue() async throws {
        while true {
            let taken = try await store.take(now: try await now())
            try await publish(taken)
            guard taken.count == BadgeStore.batch, !Task.isCancelled else { return }
        }
    }

    private func publish(_ taken: [BadgeStore.Correction]) async throws {
        let ruleSets = currentRules.ruleSets
        let now = try await now()
        var done: [BadgeStore.Correction] = []
        for (app, corrections) in Dictionary(grouping: taken, by: \.person.app) {
            let use = ruleSets.ruleSets[app]?.badgeUse ?? .none
            let needed = corrections.filter { use.correction(unread: $0.unread) != nil }
            done += corrections.filter { use.correction(unread: $0.unread) == nil }
            done += try await publish(needed[...], of: app, use, now: now)
        }
        try await store.forget(done)
    }

    /// Publishes corrections as one message. Halves them if no message can carry all.
    ///
    /// - Returns: the corrections that the broker has confirmed.
    private func publish(
        _ corrections: ArraySlice<BadgeStore.Correction>, of app: AppID, _ use: BadgeUse, now: Timestamp
    ) async throws -> ArraySlice<BadgeStore.Correction> {
        guard !corrections.isEmpty else { return [] }
        let notification = notification(to: Array(corrections), of: app, use, now: now)
        let message = try? Outbound(
            notification, to: .notifications, routingKey: RoutingKey.notification(notification.lane, app)
        ).message(from: service)
        let results = try await bus.post(message.map { [$0] } ?? [], kind: "A badge correction", logger: logger)
        switch results.first ?? .refused {
        case .confirmed:
            Counter(label: "heliograph_rules_badges_corrected_total", dimensions: [("app", app.rawValue)])
                .increment(by: corrections.count)
            return corrections
        case .retry: return []
        case .refused:
            guard corrections.count > 1 else {
                try await store.markDead(Array(corrections))
                return []
            }
            let middle = corrections.startIndex + corrections.count / 2
            return try await publish(corrections[..<middle], of: app, use, now: now)
                + publish(corrections[middle...], of: app, use, now: now)
        }
    }

    private func notification(
        to corrections: [BadgeStore.Correction], of app: AppID, _ use: BadgeUse, now: Timestamp
    ) -> Notification {
        let recipients = corrections.map { correction in
            let person = correction.person
            return Notification.Recipient(
                user: person.user,
                notification: DerivedID.uuid5(
                    DerivedID.namespace, ["badge", app.rawValue, person.user.rawValue, "\(correction.version)"]),
                badge: use.correction(unread: correction.unread).map(Content.badge))
        }
        return BadgeCorrection.notification(to: recipients, of: app, now: now)
    }
}

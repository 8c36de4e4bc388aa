import AMQP
import DecisionLog
import FoundationEssentials
import Logging
import Messaging
import Metrics
import Postgres
import PushProtocol
import RuleEngine
import ServiceKit
import ServiceLifecycle

/// Carries out revocations by operators and rule files, in steps.
///
/// Held and gathered notifications are dropped. The pushes of a step are published to the senders' stream and
/// confirmed before its inbox items are deleted. Live surfaces that the notifications started are ended. Any number of
/// processes may run it. After a crash another process continues after the last completed step. Runs until graceful
/// shutdown.
struct NotificationRevoker: Service {
    /// The polling interval when nothing is due.
    static let pace = Duration.milliseconds(250)
    /// The delay before a step that the broker did not confirm, or whose statement timed out, is repeated.
    static let retryDelay = Duration.seconds(1)

    let service: String
    let store: RevocationStore
    let currentRules: CurrentRules
    let bus: any MessageBus
    /// The time that processes share (``DatabaseClock``).
    let now: @Sendable () async throws -> Timestamp
    let logger: Logger

    func run() async throws {
        await PeriodicTask(
            every: Self.pace, failureMessage: "Cannot carry out revocations; retrying",
            recoveryMessage: "Carrying out revocations again", logger: logger
        ).run { try await revokeDue() }
    }

    /// Carries out every revocation that is due. One that fails does not block the others.
    func revokeDue() async throws {
        while true {
            let taken = try await store.take()
            for work in taken {
                do { try await carryOut(work) } catch let error where error.isCausedByRows {
                    try await handle(error, of: work)
                }
            }
            guard taken.count == RevocationStore.batch, !Task.isCancelled else { return }
        }
    }

    private func carryOut(_ work: RevocationStore.Work) async throws {
        var work = work
        try await store.begin(work, now: try await now())
        while true {
            let step = try await store.advance(work, now: try await now())
            let ends = try await store.endSurfaces(of: step, work, now: try await now())
            for result in [try await publish(step, of: work.app), try await publish(ends)] {
                switch result {
                case .confirmed: break
                case .retry: return try await store.postpone(work, by: Self.retryDelay)
                case .refused: return try await store.markDead(work, .unsendable)
                }
            }
            try await store.complete(step, of: work, now: try await now())
            work.position = step.notifications.last
            guard !step.isLast else { break }
        }
        guard let ended = try await store.end(work) else { return }
        report(ended, of: work.app)
    }

    /// Revokes pushes and campaigns at the senders, and cancels the campaigns. The senders skip pushes of a campaign
    /// that the registry has published before, or publishes later.
    private func publish(_ step: RevocationStore.Step, of app: AppID) async throws -> PublishResult {
        let moment = try await now()
        let messages =
            try? NotificationRevocation.messages(
                revoking: step.pushes + step.campaigns, of: app, at: moment, from: service)
            + step.campaigns.map { try DeviceCommand.message(cancelling: $0, of: app, from: service) }
        guard let messages else { return .refused }
        return try await post(messages, kind: "A revocation")
    }

    private func publish(_ ends: [SurfaceEnd]) async throws -> PublishResult {
        let notifications = SurfaceEnd.notifications(ends, by: currentRules.ruleSets, now: try await now())
        let messages = try? notifications.map { notification throws(WireError) in
            let key = RoutingKey.notification(notification.lane, notification.app)
            return try Outbound(notification, to: .notifications, routingKey: key).message(from: service)
        }
        guard let messages else { return .refused }
        return try await post(messages, kind: "The end of a live surface")
    }

    private func post(_ messages: [AMQPMessage], kind: String) async throws -> PublishResult {
        let results = Set(try await bus.post(messages, kind: kind, logger: logger))
        return results.contains(.refused) ? .refused : results.contains(.retry) ? .retry : .confirmed
    }

    /// A statement that timed out is repeated, because it may have waited for a lock. Any other failure is permanent.
    private func handle(_ error: any Error, of work: RevocationStore.Work) async throws {
        let isTimeout = (error as? PostgresError)?.isTimeout ?? false
        logger.warning(
            isTimeout ? "A revocation timed out; retrying" : "A revocation failed; marking its row as dead",
            metadata: [
                LogKey.app: "\(work.app)", "revocation": "\(work.revocation.id.uuidString.lowercased())",
                LogKey.error: "\(error)",
            ])
        if isTimeout {
            try await store.postpone(work, by: Self.retryDelay)
        } else {
            try await store.markDead(work, .failed)
        }
    }

    private func report(_ revocation: Revocation, of app: AppID) {
        Counter(
            label: "heliograph_rules_revocations_total",
            dimensions: [("app", app.rawValue), ("source", revocation.source.rawValue)]
        ).increment()
        if revocation.effect.pushes > 0 {
            Counter(label: "heliograph_rules_pushes_revoked_total", dimensions: [("app", app.rawValue)])
                .increment(by: revocation.effect.pushes)
        }
        logger.info(
            "Revocation carried out; pushctl explain shows it",
            metadata: [
                LogKey.app: "\(app)", "revocation": "\(revocation.id.uuidString.lowercased())",
                "source": "\(revocation.source.rawValue)",
                "revoked": "\(revocation.effect.text)",
            ])
    }
}

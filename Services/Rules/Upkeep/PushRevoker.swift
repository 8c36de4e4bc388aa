import AMQP
import FoundationEssentials
import Logging
import Messaging
import Metrics
import PushProtocol
import ServiceKit
import ServiceLifecycle

/// Revokes pushes under way that their users switched off or muted after the decision. The inbox keeps them. Any number of
/// processes may run it. Runs until graceful shutdown.
///
/// A push that the provider has accepted cannot be revoked.
struct PushRevoker: Service {
    /// How often it looks when nothing is due.
    static let pace = Duration.milliseconds(500)

    let service: String
    let store: PreferenceChangeStore
    let shelf: RuleShelf
    let bus: any MessageBus
    let now: @Sendable () async throws -> Timestamp
    let logger: Logger

    func run() async throws {
        await PeriodicTask(
            every: Self.pace, failureMessage: "Pushes cannot be revoked after changes of preferences; retrying",
            recoveryMessage: "Pushes are revoked again", logger: logger
        ).run { try await revokeDue() }
    }

    /// Handles every change of preferences that is due.
    func revokeDue() async throws {
        while true {
            let changes = try await store.take(now: try await now())
            try await store.forget(try await publish(changes))
            guard changes.count == PreferenceChangeStore.batch, !Task.isCancelled else { return }
        }
    }

    /// - Returns: the changes that are complete.
    private func publish(_ changes: [PreferenceChangeStore.Change]) async throws -> [PreferenceChangeStore.Change] {
        let (book, now) = (shelf.book, try await now())
        var done: [PreferenceChangeStore.Change] = []
        for change in changes {
            let unwanted = change.unwanted(in: book.ruleSets[change.person.app], now: now)
            if unwanted.isEmpty {
                done.append(change)
            } else if try await publish(unwanted, of: change, at: now) {
                done.append(change)
            }
        }
        return done
    }

    private func publish(
        _ notifications: [UUID], of change: PreferenceChangeStore.Change, at now: Timestamp
    ) async throws -> Bool {
        let app = change.person.app
        let id = DerivedID.uuid5(DerivedID.namespace, "revoked", ids: notifications)
        let text = id.uuidString.lowercased()
        let revocation = NotificationRevocation(
            trace: Trace(id: id, correlation: text, causation: text), app: app, notifications: notifications, at: now)
        let message = try Outbound(revocation, to: .notifications, routingKey: RoutingKey.revocation(app))
            .message(from: service)
        guard try await bus.post([message], kind: "A revocation", logger: logger) == [true] else { return false }
        count(notifications.count, app)
        return true
    }

    /// | name | kind | labels | counts |
    /// |---|---|---|---|
    /// | `heliograph_rules_pushes_revoked_total` | counter | app | pushes that were revoked because their users changed their preferences |
    private func count(_ number: Int, _ app: AppID) {
        Counter(label: "heliograph_rules_pushes_revoked_total", dimensions: [("app", app.rawValue)])
            .increment(by: number)
    }
}

extension PreferenceChangeStore.Change {
    /// The pushes that the present settings refuse. Pushes of a rule that the app no longer has follow the switch for
    /// everything.
    func unwanted(in ruleSet: RuleSet?, now: Timestamp) -> [UUID] {
        let judge = Judge(house: ruleSet?.house ?? HouseRules(), now: now)
        return pushes.filter { push in
            let policy = ruleSet?.rule(named: push.rule)?.policy ?? Rule.Policy()
            guard !judge.house.isCritical(policy) else { return false }
            let matter = Matter(policy: policy, isNoise: true, mutes: push.mutes, since: now)
            return judge.preferences(matter, settings) != nil
        }.map(\.notification)
    }
}

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
import Synchronization

/// Revokes pushes in flight that their users switched off or muted after the decision. The inbox keeps them.
///
/// Pushes that are decided when a preference changes are revoked at once. A decision that read the former settings may
/// commit later, so the change is looked at again until all transactions that began before it have ended.
///
/// A push that the provider has accepted cannot be revoked. Any number of processes may run it. Runs until graceful
/// shutdown.
struct PushRevoker: Service {
    /// The polling interval when nothing is due.
    static let pace = Duration.milliseconds(500)

    let service: String
    let store: PreferenceChangeStore
    let currentRules: CurrentRules
    let bus: any MessageBus
    let now: @Sendable () async throws -> Timestamp
    let logger: Logger
    private let revoked = RevokedNotifications()

    func run() async throws {
        await PeriodicTask(
            every: Self.pace, failureMessage: "Cannot revoke pushes after changes of preferences; retrying",
            recoveryMessage: "Revoking pushes again", logger: logger
        ).run { try await revokeDue() }
    }

    /// Handles every change of preferences that is due.
    func revokeDue() async throws {
        while true {
            let changes = try await store.take(now: try await now())
            let done = try await publish(changes)
            try await store.postpone(done.filter { !$0.isComplete })
            try await store.forget(done.filter(\.isComplete))
            guard changes.count == PreferenceChangeStore.batch, !Task.isCancelled else { return }
        }
    }

    /// - Returns: the changes whose known pushes are revoked.
    private func publish(_ changes: [PreferenceChangeStore.Change]) async throws -> [PreferenceChangeStore.Change] {
        let (ruleSets, now) = (currentRules.ruleSets, try await now())
        var done: [PreferenceChangeStore.Change] = []
        for change in changes {
            let unwanted = revoked.missing(
                of: change.unwanted(in: ruleSets[change.person.app], now: now))
            let result = try await unwanted.isEmpty ? .confirmed : publish(unwanted, of: change, at: now)
            switch result {
            case .confirmed: done.append(change)
            case .retry: continue
            case .refused: try await store.markDead(change)
            }
        }
        return done
    }

    private func publish(
        _ notifications: [UUID], of change: PreferenceChangeStore.Change, at now: Timestamp
    ) async throws -> PublishResult {
        let app = change.person.app
        let messages = try? NotificationRevocation.messages(revoking: notifications, of: app, at: now, from: service)
        guard let messages else { return .refused }
        // At most ``PreferenceChangeStore/mostPushes``, which one message carries.
        let result = try await bus.post(messages, kind: "A revocation", logger: logger)[0]
        if case .confirmed = result {
            revoked.insert(notifications)
            Counter(label: "heliograph_rules_pushes_revoked_total", dimensions: [("app", app.rawValue)])
                .increment(by: notifications.count)
        }
        return result
    }
}

/// The notifications that this process revoked last. Senders keep a revocation as long as its push may be in flight, so
/// each is published once, however often its user changes a preference.
private final class RevokedNotifications: Sendable {
    /// The size of the younger set at which the older set is dropped.
    private static let most = 100_000

    private let sets = Mutex<(young: Set<UUID>, old: Set<UUID>)>(([], []))

    func missing(of notifications: [UUID]) -> [UUID] {
        sets.withLock { sets in notifications.filter { !sets.young.contains($0) && !sets.old.contains($0) } }
    }

    func insert(_ notifications: [UUID]) {
        sets.withLock { sets in
            if sets.young.count >= Self.most { sets = ([], sets.young) }
            sets.young.formUnion(notifications)
        }
    }
}

extension PreferenceChangeStore.Change {
    /// The pushes that the present settings refuse. Pushes of a rule that the app no longer has follow the switch for
    /// everything.
    func unwanted(in ruleSet: RuleSet?, now: Timestamp) -> [UUID] {
        let engine = DecisionEngine(defaults: ruleSet?.defaults ?? .standard, now: now)
        return pushes.filter { push in
            let policy = ruleSet?.rule(named: push.rule)?.policy ?? .standard
            guard !engine.defaults.isCritical(policy) else { return false }
            let input = DecisionInput(policy: policy, isUserVisible: true, mutes: push.mutes, since: now)
            return engine.preferences(input, settings) != nil
        }.map(\.notification)
    }
}

import FoundationEssentials
import Logging
import Messaging
import Postgres
import PushProtocol
import ServiceConnections
import ServiceKit

/// Decides about crowds, some people at a time, so that neither memory nor locks grow with them.
struct FanOutStore: Sendable {
    /// How long one process has to publish a step.
    static let lease = Duration.seconds(30)

    let decisions: DecisionStore
    var logger = Logger.rules

    private var pool: PostgresPool { decisions.pool }

    /// A step that was decided, and is to be published.
    struct Step: Sendable {
        let largeAudience: LargeAudience
        /// The event, and what is said of it to the people of this step.
        let event: EventCase
        let answers: [UUID: RuleDecision.Answer]
        let pendingNotifications: [EventCase.PendingNotification]
        let unread: [PersonKey: Int]
    }

    /// What the next crowd came to.
    enum Progress: Sendable {
        /// No crowd is due.
        case nothing
        /// It came on without anybody to be told, or to its end.
        case walked
        case decided(Step)
    }

    /// Takes the crowd whose turn it is a step further, in one transaction. What another process decided and did not say
    /// to have published is not decided again: it is to be published again, under the same ids. A crowd that cannot be read
    /// or taken further is marked as dead (``DeadRow``), and the others go on.
    func advance(by ruleSets: RuleSets, now: Timestamp) async throws -> Progress {
        let due = FanOutRows.due(now)
        return try await Outage.ofDatabase {
            do { return try await advance(due, by: ruleSets, now: now) } catch let error where error.isOfTheWork {
                logger.warning(
                    "A step of a crowd failed; each crowd is looked at alone", metadata: [LogKey.error: "\(error)"])
            }
            return try await advanceAlone(due, by: ruleSets, now: now)
        }
    }

    /// The same with each crowd alone, until one comes on.
    private func advanceAlone(_ due: SQL, by ruleSets: RuleSets, now: Timestamp) async throws -> Progress {
        var unmarked = 0
        for row in try await pool.query(FanOutRows.keys(due)) {
            let key = try FanOutRows.key(row)
            do {
                switch try await advance(FanOutRows.due(now, only: key), by: ruleSets, now: now) {
                case .nothing: continue
                case .walked: return .walked
                case .decided(let step): return .decided(step)
                }
            } catch let error where error.isOfTheWork {
                unmarked += try await pool.bury([key.dead(.failed)], logger) ? 0 : 1
            }
        }
        return unmarked == 0 ? .walked : .nothing
    }

    private func advance(_ which: SQL, by ruleSets: RuleSets, now: Timestamp) async throws -> Progress {
        try await pool.transaction { transaction in
            try await transaction.execute(AdvisoryLock.decisions.shared)
            guard let row = try await transaction.query(FanOutRows.select(which)).first else { return .nothing }
            var largeAudience: LargeAudience
            do { largeAudience = try LargeAudience(row) } catch {
                try await transaction.bury([try FanOutRows.dead(row)], logger)
                return .walked
            }
            // What the rules of now cannot evaluate is as gone as what they do not have: both are decided as such.
            guard let set = ruleSets.ruleSets[largeAudience.event.app],
                let draft = try? set.evaluate(largeAudience.event, by: largeAudience.rule, now: largeAudience.arrivedAt)
            else {
                try await abandon(largeAudience, transaction, now: now)
                return .walked
            }
            var event = EventCase(
                largeAudience.event, ruleSet: set, arrivedAt: largeAudience.arrivedAt, drafts: [draft])
            var memory: DecisionStore.Memory?
            if let decided = largeAudience.decided {
                memory = try await recall(largeAudience, upTo: decided, &event, transaction)
            } else {
                let page = try await page(of: largeAudience, event.pendingNotifications[0], transaction)
                guard !page.recipients.isEmpty else {
                    largeAudience.told = page.end ?? largeAudience.told
                    if page.end == nil {
                        try await transaction.end(largeAudience, now: now)
                    } else {
                        try await transaction.move(largeAudience, due: now)
                    }
                    return .walked
                }
                largeAudience.decided = page.end ?? page.recipients.last?.user.rawValue
                event.pendingNotifications[0].recipients = page.recipients
            }
            event.pendingNotifications[0].groupReferences = []
            event.pendingNotifications[0].part = "/after/\(largeAudience.told)"
            // Whoever asked for it in the meantime is not told any more.
            event = try await transaction.withoutErased([event])[0]
            let batchDecisions = try await decisions.decide(event, memory, transaction, now: now)
            try await transaction.move(largeAudience, due: now + Self.lease)
            guard case .decided(let answers, let pendingNotifications) = batchDecisions.answers[event.record.key] else {
                return .walked
            }
            return .decided(
                Step(
                    largeAudience: largeAudience, event: event, answers: answers,
                    pendingNotifications: pendingNotifications, unread: batchDecisions.unread))
        }
    }

    /// The broker has all of a step.
    func confirm(_ step: Step, now: Timestamp) async throws {
        guard let decided = step.largeAudience.decided else { return }
        do {
            try await Outage.ofDatabase {
                try await decisions.pool.execute(
                    """
                    UPDATE rules.crowd SET told = decided, decided = NULL, due_at = \(now.date)
                    WHERE event = \(step.largeAudience.key) AND rule = \(step.largeAudience.rule)
                        AND told = \(step.largeAudience.told) AND decided = \(decided)
                    """)
            }
        } catch let error where error.isOfTheWork {
            try await bury(step, .failed)
        }
    }

    /// Marks a crowd whose step cannot be published or confirmed.
    func bury(_ step: Step, _ reason: DeadRow.Reason) async throws {
        let key = FanOutRows.Key(event: step.largeAudience.key, rule: step.largeAudience.rule)
        try await Outage.ofDatabase {
            try await pool.bury([key.dead(reason, app: step.largeAudience.event.app.rawValue)], logger)
        }
    }

    private func page(
        of largeAudience: LargeAudience, _ pending: EventCase.PendingNotification, _ transaction: PostgresTransaction
    ) async throws -> FanOutPage {
        var parts: [FanOutPage.Part] = []
        for groupReference in pending.groupReferences {
            parts.append(
                try await transaction.part(
                    of: groupReference, in: largeAudience.event.app, after: largeAudience.told, logger))
        }
        return FanOutPage(pending, after: largeAudience.told, parts)
    }

    /// Puts those who were decided about into the event, with the badges that it has for them.
    private func recall(
        _ largeAudience: LargeAudience, upTo decided: String, _ event: inout EventCase,
        _ transaction: PostgresTransaction
    ) async throws -> DecisionStore.Memory {
        var memory = DecisionStore.Memory()
        var users: [UserID] = []
        for (user, id, answer) in try await transaction.decided(of: largeAudience, upTo: decided) {
            memory.answers[id] = answer
            users.append(user)
        }
        let known = Set(users)
        event.pendingNotifications[0].recipients.removeAll { !known.contains($0.user) }
        event.pendingNotifications[0] = event.pendingNotifications[0].joined(by: users)
        event.pendingNotifications[0].recipients.sort { FanOutPage.precedes($0.user.rawValue, $1.user.rawValue) }
        return memory
    }

    /// The rules changed under it, and have nothing to say any more. One decision stands for all who are left.
    private func abandon(_ largeAudience: LargeAudience, _ transaction: PostgresTransaction, now: Timestamp)
        async throws
    {
        if let rest = UserID(rawValue: "(everybody who was left)") {
            var writes = DecisionWrites(decidedAt: now)
            writes.decisions.append(
                DecisionRecord(
                    notification: DerivedID.uuid5(largeAudience.key, ["crowd", largeAudience.rule]), step: 0,
                    event: largeAudience.key,
                    rule: largeAudience.rule, person: PersonKey(app: largeAudience.event.app, user: rest),
                    decision: RuleDecision(answer: .drop, reason: .ruleGone)))
            try await transaction.keep(writes, [:], now: now)
        }
        try await transaction.end(largeAudience, now: now)
    }
}

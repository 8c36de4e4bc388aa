import FoundationEssentials
import Logging
import Messaging
import Postgres
import PushProtocol
import RuleEngine
import RuleLanguage
import ServiceConnections
import ServiceKit

/// Decides fan-outs step by step, so that known and locks do not grow with the audience.
struct FanOutStore: Sendable {
    /// The time that a process has to publish a step.
    static let lease = Duration.seconds(30)

    let decisions: DecisionStore
    var logger = Logger.rules

    private var pool: PostgresPool { decisions.pool }

    /// A decided step that is to be published.
    struct Step: Sendable {
        let largeAudience: LargeAudience
        /// The event, with the notification to this step's recipients.
        let event: EventCase
        let answers: [UUID: RuleDecision.Answer]
        let drafts: [NotificationDraft]
        let unread: [PersonKey: Int]
    }

    /// The result of ``advance(by:now:)``.
    enum Progress: Sendable {
        /// No fan-out is due.
        case nothing
        /// A fan-out advanced by a step without recipients, or ended.
        case advanced
        case decided(Step)
    }

    /// Advances the fan-out that is due longest by one step, in one transaction.
    ///
    /// A step that another process decided and did not confirm in time is not decided again. It is returned to be
    /// published again under the same ids. A fan-out that cannot be read or advanced is marked as dead (``DeadRow``)
    /// and does not block the others.
    func advance(by ruleSets: RuleSets, now: Timestamp) async throws -> Progress {
        let due = FanOutRows.due(now)
        return try await Outage.ofDatabase {
            do { return try await advance(due, by: ruleSets, now: now) } catch let error where error.isCausedByRows {
                logger.warning(
                    "A fan-out step failed; processing each fan-out alone", metadata: [LogKey.error: "\(error)"])
            }
            return try await advanceAlone(due, by: ruleSets, now: now)
        }
    }

    /// The same with each fan-out alone, until one advances.
    private func advanceAlone(_ due: SQL, by ruleSets: RuleSets, now: Timestamp) async throws -> Progress {
        var unmarked = 0
        for row in try await pool.query(FanOutRows.keys(due)) {
            let key = try FanOutRows.key(row)
            do {
                switch try await advance(FanOutRows.due(now, only: key), by: ruleSets, now: now) {
                case .nothing: continue
                case .advanced: return .advanced
                case .decided(let step): return .decided(step)
                }
            } catch let error where error.isCausedByRows {
                unmarked += try await pool.markDead([key.dead(.failed)], logger) ? 0 : 1
            }
        }
        return unmarked == 0 ? .advanced : .nothing
    }

    private func advance(_ which: SQL, by ruleSets: RuleSets, now: Timestamp) async throws -> Progress {
        try await pool.transaction { transaction in
            try await transaction.execute(AdvisoryLock.decisions.shared)
            guard let row = try await transaction.query(FanOutRows.select(which)).first else { return .nothing }
            var largeAudience: LargeAudience
            do { largeAudience = try LargeAudience(row) } catch {
                try await transaction.markDead([try FanOutRows.dead(row)], logger)
                return .advanced
            }
            // A decided step is published first: the senders skip its revoked pushes, and no push stays unpublished.
            if largeAudience.decidedUpTo == nil, try await transaction.isRevoked(largeAudience) {
                try await end(largeAudience, .revoked, transaction, now: now)
                return .advanced
            }
            // A rule that is missing from the rule set, or cannot be evaluated, ends the fan-out as `rule-gone`.
            guard let set = ruleSets[largeAudience.event.app],
                let draft = try? set.evaluate(
                    largeAudience.event, by: largeAudience.rule, arrivedAt: largeAudience.arrivedAt)
            else {
                try await end(largeAudience, .ruleGone, transaction, now: now)
                return .advanced
            }
            var event = EventCase(
                largeAudience.event, ruleSet: set, arrivedAt: largeAudience.arrivedAt, drafts: [draft])
            var known: DecisionStore.KnownEvent?
            if let decided = largeAudience.decidedUpTo {
                known = try await restoreStep(largeAudience, upTo: decided, &event, transaction)
            } else {
                let page = try await page(of: largeAudience, event.drafts[0], transaction)
                guard !page.recipients.isEmpty else {
                    largeAudience.confirmedUpTo = page.end ?? largeAudience.confirmedUpTo
                    if page.end == nil {
                        try await transaction.end(largeAudience, now: now)
                    } else {
                        try await transaction.move(largeAudience, due: now)
                    }
                    return .advanced
                }
                largeAudience.decidedUpTo = page.end ?? page.recipients.last?.user.rawValue
                event.drafts[0].recipients = page.recipients
            }
            event.drafts[0].groupReferences = []
            event.drafts[0].part = "/after/\(largeAudience.confirmedUpTo)"
            // Removes users that were erased since the previous step.
            event = try await transaction.withoutErased([event])[0]
            let batchDecisions = try await decisions.storeDecisions(event, known, transaction, now: now)
            try await transaction.move(largeAudience, due: now + Self.lease)
            guard case .decided(let answers, let drafts) = batchDecisions.answers[event.record.key] else {
                return .advanced
            }
            return .decided(
                Step(
                    largeAudience: largeAudience, event: event, answers: answers,
                    drafts: drafts, unread: batchDecisions.unread))
        }
    }

    /// Records that the broker has confirmed all messages of a step.
    func confirm(_ step: Step, now: Timestamp) async throws {
        guard let decided = step.largeAudience.decidedUpTo else { return }
        do {
            try await Outage.ofDatabase {
                try await decisions.pool.execute(
                    """
                    UPDATE rules.crowd SET told = decided, decided = NULL, due_at = \(now.date)
                    WHERE event = \(step.largeAudience.key) AND rule = \(step.largeAudience.rule)
                        AND told = \(step.largeAudience.confirmedUpTo) AND decided = \(decided)
                    """)
            }
        } catch let error where error.isCausedByRows {
            try await markDead(step, .failed)
        }
    }

    /// Marks a fan-out as dead whose step cannot be published or confirmed.
    func markDead(_ step: Step, _ reason: DeadRow.Reason) async throws {
        let key = FanOutRows.Key(event: step.largeAudience.key, rule: step.largeAudience.rule)
        try await Outage.ofDatabase {
            try await pool.markDead([key.dead(reason, app: step.largeAudience.event.app.rawValue)], logger)
        }
    }

    private func page(
        of largeAudience: LargeAudience, _ draft: NotificationDraft, _ transaction: PostgresTransaction
    ) async throws -> FanOutPage {
        var parts: [FanOutPage.Part] = []
        for groupReference in draft.groupReferences {
            parts.append(
                try await transaction.part(
                    of: groupReference, in: largeAudience.event.app, after: largeAudience.confirmedUpTo, logger))
        }
        return FanOutPage(draft, after: largeAudience.confirmedUpTo, parts)
    }

    /// Restores the recipients of a decided step, with the badges that the event gives them.
    private func restoreStep(
        _ largeAudience: LargeAudience, upTo decided: String, _ event: inout EventCase,
        _ transaction: PostgresTransaction
    ) async throws -> DecisionStore.KnownEvent {
        var known = DecisionStore.KnownEvent()
        var users: [UserID] = []
        for (user, id, answer) in try await transaction.decided(of: largeAudience, upTo: decided) {
            known.answers[id] = answer
            users.append(user)
        }
        let decidedUsers = Set(users)
        event.drafts[0].recipients.removeAll { !decidedUsers.contains($0.user) }
        event.drafts[0] = event.drafts[0].joined(by: users)
        event.drafts[0].recipients.sort { FanOutPage.precedes($0.user.rawValue, $1.user.rawValue) }
        return known
    }

    /// Ends a fan-out early: its rule is gone, or it is revoked. One decision covers all remaining recipients.
    private func end(
        _ largeAudience: LargeAudience, _ reason: RuleDecision.Cause, _ transaction: PostgresTransaction,
        now: Timestamp
    ) async throws {
        if let rest = UserID(rawValue: "(everybody who was left)") {
            var writes = DecisionWrites(decidedAt: now)
            writes.decisions.append(
                DecisionRecord(
                    notification: DerivedID.uuid5(largeAudience.key, ["crowd", largeAudience.rule]), step: 0,
                    event: largeAudience.key,
                    rule: largeAudience.rule, person: PersonKey(app: largeAudience.event.app, user: rest),
                    decision: RuleDecision(answer: .drop, reason: reason)))
            try await transaction.keep(writes, [:], now: now)
        }
        try await transaction.end(largeAudience, now: now)
    }
}

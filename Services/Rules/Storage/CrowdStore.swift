import FoundationEssentials
import Logging
import Messaging
import Postgres
import PushProtocol
import ServiceKit

/// Decides about crowds, some people at a time, so that neither memory nor locks grow with them.
struct CrowdStore: Sendable {
    /// How long one process has to publish a step.
    static let lease = Duration.seconds(30)

    let decisions: DecisionStore
    var logger = Logger.rules

    private var pool: PostgresPool { decisions.pool }

    /// A step that was decided, and is to be published.
    struct Step: Sendable {
        let crowd: Crowd
        /// The event, and what is said of it to the people of this step.
        let event: EventCase
        let answers: [UUID: Judgement.Answer]
        let statements: [EventCase.Statement]
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
    func advance(by book: RuleBook, now: Timestamp) async throws -> Progress {
        let due = CrowdRows.due(now)
        return try await Outage.ofDatabase {
            do { return try await advance(due, by: book, now: now) } catch let error where error.isOfTheWork {
                logger.warning(
                    "A step of a crowd failed; each crowd is looked at alone", metadata: [LogKey.error: "\(error)"])
            }
            return try await advanceAlone(due, by: book, now: now)
        }
    }

    /// The same with each crowd alone, until one comes on.
    private func advanceAlone(_ due: SQL, by book: RuleBook, now: Timestamp) async throws -> Progress {
        var unmarked = 0
        for row in try await pool.query(CrowdRows.keys(due)) {
            let key = try CrowdRows.key(row)
            do {
                switch try await advance(CrowdRows.due(now, only: key), by: book, now: now) {
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

    private func advance(_ which: SQL, by book: RuleBook, now: Timestamp) async throws -> Progress {
        try await pool.transaction { transaction in
            try await transaction.execute(Turn.decisions.shared)
            guard let row = try await transaction.query(CrowdRows.select(which)).first else { return .nothing }
            var crowd: Crowd
            do { crowd = try Crowd(row) } catch {
                try await transaction.bury([try CrowdRows.dead(row)], logger)
                return .walked
            }
            // What the rules of now cannot evaluate is as gone as what they do not have: both are decided as such.
            guard let set = book.ruleSets[crowd.event.app],
                let draft = try? set.evaluate(crowd.event, by: crowd.rule, now: crowd.arrivedAt)
            else {
                try await abandon(crowd, transaction, now: now)
                return .walked
            }
            var event = EventCase(crowd.event, ruleSet: set, arrivedAt: crowd.arrivedAt, drafts: [draft])
            var memory: DecisionStore.Memory?
            if let decided = crowd.decided {
                memory = try await recall(crowd, upTo: decided, &event, transaction)
            } else {
                let page = try await page(of: crowd, event.statements[0], transaction)
                guard !page.recipients.isEmpty else {
                    crowd.told = page.end ?? crowd.told
                    if page.end == nil {
                        try await transaction.end(crowd, now: now)
                    } else {
                        try await transaction.move(crowd, due: now)
                    }
                    return .walked
                }
                crowd.decided = page.end ?? page.recipients.last?.user.rawValue
                event.statements[0].recipients = page.recipients
            }
            event.statements[0].circles = []
            event.statements[0].part = "/after/\(crowd.told)"
            // Whoever asked for it in the meantime is not told any more.
            event = try await transaction.withoutErased([event])[0]
            let rulings = try await decisions.decide(event, memory, transaction, now: now)
            try await transaction.move(crowd, due: now + Self.lease)
            guard case .decided(let answers, let statements) = rulings.answers[event.record.key] else {
                return .walked
            }
            return .decided(
                Step(
                    crowd: crowd, event: event, answers: answers, statements: statements, unread: rulings.unread))
        }
    }

    /// The broker has all of a step.
    func confirm(_ step: Step, now: Timestamp) async throws {
        guard let decided = step.crowd.decided else { return }
        do {
            try await Outage.ofDatabase {
                try await decisions.pool.execute(
                    """
                    UPDATE rules.crowd SET told = decided, decided = NULL, due_at = \(now.date)
                    WHERE event = \(step.crowd.key) AND rule = \(step.crowd.rule)
                        AND told = \(step.crowd.told) AND decided = \(decided)
                    """)
            }
        } catch let error where error.isOfTheWork {
            try await bury(step, .failed)
        }
    }

    /// Marks a crowd whose step cannot be published or confirmed.
    func bury(_ step: Step, _ reason: DeadRow.Reason) async throws {
        let key = CrowdRows.Key(event: step.crowd.key, rule: step.crowd.rule)
        try await Outage.ofDatabase {
            try await pool.bury([key.dead(reason, app: step.crowd.event.app.rawValue)], logger)
        }
    }

    private func page(
        of crowd: Crowd, _ statement: EventCase.Statement, _ transaction: PostgresTransaction
    ) async throws -> CrowdPage {
        var parts: [CrowdPage.Part] = []
        for circle in statement.circles {
            parts.append(try await transaction.part(of: circle, in: crowd.event.app, after: crowd.told, logger))
        }
        return CrowdPage(statement, after: crowd.told, parts)
    }

    /// Puts those who were decided about into the event, with the badges that it has for them.
    private func recall(
        _ crowd: Crowd, upTo decided: String, _ event: inout EventCase, _ transaction: PostgresTransaction
    ) async throws -> DecisionStore.Memory {
        var memory = DecisionStore.Memory()
        var users: [UserID] = []
        for (user, id, answer) in try await transaction.decided(of: crowd, upTo: decided) {
            memory.answers[id] = answer
            users.append(user)
        }
        let known = Set(users)
        event.statements[0].recipients.removeAll { !known.contains($0.user) }
        event.statements[0] = event.statements[0].joined(by: users)
        event.statements[0].recipients.sort { CrowdPage.precedes($0.user.rawValue, $1.user.rawValue) }
        return memory
    }

    /// The rules changed under it, and have nothing to say any more. One decision stands for all who are left.
    private func abandon(_ crowd: Crowd, _ transaction: PostgresTransaction, now: Timestamp) async throws {
        if let rest = UserID(rawValue: "(everybody who was left)") {
            var writes = RulingWrites(decidedAt: now)
            writes.decisions.append(
                Ruled(
                    notification: DerivedID.uuid5(crowd.key, ["crowd", crowd.rule]), step: 0, event: crowd.key,
                    rule: crowd.rule, person: PersonKey(app: crowd.event.app, user: rest),
                    judgement: Judgement(answer: .drop, reason: .ruleGone)))
            try await transaction.keep(writes, [:], now: now)
        }
        try await transaction.end(crowd, now: now)
    }
}

import FoundationEssentials
import Messaging
import Postgres
import PushProtocol
import ServiceKit

/// Decides who hears of events, and keeps that with everything that follows from it.
struct DecisionStore: Sendable {
    let pool: PostgresPool
    /// What is let go at the end of quiet hours leaves spread over this time, so that a zone does not wake all at once.
    var spread = DecisionStore.usualSpread

    static let usualSpread = Duration.seconds(600)

    /// What was decided about a batch.
    struct Rulings: Sendable {
        /// By event.
        var answers: [UUID: Ruling] = [:]
        /// How much people have not read, of those whose badge says so.
        var unread: [PersonKey: Int] = [:]
    }

    /// What was decided about one event.
    enum Ruling: Sendable {
        /// Seen before, and nothing is left to do.
        case settled
        /// By notification: what became of it when the event came first. Holds those that were decided then.
        case decided([UUID: Judgement.Answer])
    }

    /// Decides a batch in one transaction. An event that was seen before is not decided again, and nobody is charged for
    /// it again: what was decided is what is published.
    ///
    /// An event is settled when every notification that was to be pushed at once has an answer, which it can only have if
    /// it was published. An event that was seen before and has a notification without an answer is not: its first
    /// delivery may have ended between this commit and the broker's word, so it is to be published again, under the same
    /// ids. What was held is not the event's affair any more.
    ///
    /// - Parameter events: each once.
    func decide(_ events: [EventCase], now: Timestamp) async throws -> Rulings {
        guard !events.isEmpty else { return Rulings() }
        return try await Outage.ofDatabase {
            try await pool.transaction { transaction in
                let new = try await transaction.query(DecisionStore.insert(events.map(\.record))).keys
                var rulings = Rulings()
                rulings.answers = try await seen(Set(events.map(\.record.key)).subtracting(new), transaction)
                let fresh = events.filter { new.contains($0.record.key) }
                for (key, answers) in try await decide(fresh, transaction, now: now) {
                    rulings.answers[key] = .decided(answers)
                }
                rulings.unread = try await transaction.unread(Set(events.flatMap(\.counted)))
                return rulings
            }
        }
    }

    /// Decides about events that nobody has decided about.
    private func decide(
        _ events: [EventCase], _ transaction: PostgresTransaction, now: Timestamp
    ) async throws -> [UUID: [UUID: Judgement.Answer]] {
        try await transaction.take(events, now: now)
        var people = try await transaction.people(
            asked: events.flatMap(\.asked), charged: events.flatMap(\.charged), watched: events.flatMap(\.watched),
            now: now)
        var rulings: [UUID: [UUID: Judgement.Answer]] = [:]
        var writes = RulingWrites(decidedAt: now)
        for event in events {
            let decisions = event.judge(&people, now: now)
            writes.read(event)
            writes.add(event, decisions, spread: spread)
            rulings[event.record.key] = Dictionary(decisions.map { ($0.notification, $0.judgement.answer) }) {
                first, _ in
                first
            }
        }
        for key in Set(events.flatMap(\.charged)) { writes.logs[key] = people[key]?.logs }
        if !writes.isEmpty { try await transaction.execute(writes.sql()) }
        return rulings
    }

    /// What was decided about events that were seen before.
    private func seen(_ keys: Set<UUID>, _ transaction: PostgresTransaction) async throws -> [UUID: Ruling] {
        guard !keys.isEmpty else { return [:] }
        var rulings = Dictionary(uniqueKeysWithValues: keys.map { ($0, [UUID: Judgement.Answer]()) })
        for row in try await transaction.query(DecisionStore.decisions(Array(keys))) {
            let until = try row.decode(Date?.self, at: 3).map(Timestamp.init)
            rulings[try row.decode(UUID.self, at: 0), default: [:]][try row.decode(UUID.self, at: 1)] =
                Judgement.Answer(word: try row.decode(String.self, at: 2), until: until)
        }
        let settled = try await transaction.query(DecisionStore.settled(Array(keys))).keys
        return Dictionary(
            uniqueKeysWithValues: rulings.map { ($0, settled.contains($0) ? .settled : .decided($1)) })
    }

    /// In the order of the keys, so that two batches with the same events wait for each other and do not deadlock.
    private static func insert(_ events: [EventRecord]) -> SQL {
        """
        INSERT INTO rules.event (key, app, source, id, type, rule_set, arrived_at)
        SELECT * FROM unnest(
            \(events.map(\.key)), \(events.map(\.app.rawValue)), \(events.map(\.source)), \(events.map(\.id)),
            \(events.map(\.type)), \(events.map(\.ruleSet)), \(events.map(\.arrivedAt.date))
        ) AS new (key) ORDER BY key
        ON CONFLICT DO NOTHING RETURNING key
        """
    }

    private static func decisions(_ events: [UUID]) -> SQL {
        "SELECT event, notification, answer, until FROM rules.decision WHERE event = ANY(\(events)) AND step = 0"
    }

    private static func settled(_ keys: [UUID]) -> SQL {
        """
        SELECT key FROM rules.event WHERE key = ANY(\(keys)) AND NOT EXISTS (
            SELECT FROM rules.decision WHERE decision.event = event.key AND step = 0 AND answer LIKE 'push%'
                AND NOT EXISTS (SELECT FROM rules.outcome WHERE outcome.notification = decision.notification))
        """
    }
}

extension RulingWrites {
    /// What this batch put into inboxes before somebody read them.
    fileprivate mutating func read(_ event: EventCase) {
        for signal in event.signals {
            guard case .read(let user, let thread) = signal else { continue }
            let reader = PersonKey(app: event.record.app, user: user)
            for index in inbox.indices where inbox[index].person == reader {
                if thread == nil || inbox[index].thread == thread { inbox[index].isRead = true }
            }
        }
    }

    /// What an event's decisions leave behind: every alert is to be found in the inbox, whether or not it is pushed.
    fileprivate mutating func add(_ event: EventCase, _ ruled: [Ruled], spread: Duration) {
        decisions += ruled
        var rest = ruled[...]
        for statement in event.statements {
            let decided = zip(statement.recipients, rest.prefix(statement.recipients.count))
            rest = rest.dropFirst(statement.recipients.count)
            var isReferred = false
            for (recipient, ruled) in decided {
                if statement.isNoise, statement.policy.inbox {
                    isReferred = true
                    inbox.append(
                        Kept(
                            notification: recipient.notification, person: ruled.person, saying: statement.saying.id,
                            thread: statement.saying.content.thread))
                }
                guard let dueAt = ruled.judgement.dueAt(recipient.notification, spread: spread) else { continue }
                isReferred = true
                held.append(
                    Held(
                        notification: recipient.notification, person: ruled.person, saying: statement.saying.id,
                        event: event.record.key, badge: recipient.badge, dueAt: dueAt,
                        isByQuietHours: ruled.judgement.reason == .quietHours))
            }
            if isReferred { sayings.append(statement.saying) }
        }
    }
}

extension Judgement {
    /// When what is held is judged again. The end of quiet hours is everybody's at once, so it is spread, the same
    /// notification always alike.
    func dueAt(_ notification: UUID, spread: Duration) -> Timestamp? {
        guard case .hold(let until) = answer else { return nil }
        guard reason == .quietHours else { return until }
        let share = Double(UInt16(notification.uuid.0) << 8 | UInt16(notification.uuid.1)) / 65_536
        return until + spread * share
    }
}

extension [PostgresRow] {
    fileprivate var keys: Set<UUID> {
        get throws(PostgresError) {
            var keys: Set<UUID> = []
            for row in self { keys.insert(try row.decode(at: 0)) }
            return keys
        }
    }
}

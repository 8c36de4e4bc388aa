import FoundationEssentials
import Logging
import Messaging
import Postgres
import PushProtocol
import ServiceConnections
import ServiceKit

/// Decides who hears of events, and keeps that with everything that follows from it.
struct DecisionStore: Sendable {
    let pool: PostgresPool
    /// What is let go at the end of quiet hours leaves spread over this time, so that a zone does not wake all at once.
    var spread = DecisionStore.usualSpread
    var logger = Logger.rules

    static let usualSpread = Duration.seconds(600)

    /// What was decided about a batch.
    struct BatchDecisions: Sendable {
        /// By event.
        var answers: [UUID: Ruling] = [:]
        /// How much people have not read, of those whose badge says so.
        var unread: [PersonKey: Int] = [:]
    }

    /// What was decided about one event.
    enum Ruling: Sendable {
        /// Seen before, and nothing is left to do.
        case settled
        /// By notification: what became of it when the event came first. Holds those that were decided then. And what is
        /// said, with the members of its groups and in everybody's voice.
        case decided([UUID: RuleDecision.Answer], [EventCase.PendingNotification])
    }

    /// What is known of an event that was seen before.
    struct Memory {
        var isSettled = false
        var answers: [UUID: RuleDecision.Answer] = [:]
        /// By rule: whom it told.
        var users: [String: [UserID]] = [:]
        /// Rules whose people are told in steps, or were: that is not the event's affair any more.
        var largeAudiences: Set<String> = []
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
    func decide(_ events: [EventCase], now: Timestamp) async throws -> BatchDecisions {
        guard !events.isEmpty else { return BatchDecisions() }
        return try await Outage.ofDatabase {
            try await pool.transaction { transaction in
                try await transaction.execute(AdvisoryLock.decisions.shared)
                let rows = try await transaction.query(DecisionStore.insert(events.map(\.record)))
                let new = try rows.keys
                // Hardly ever: an event that somebody asked to be forgotten after.
                let isLate = try rows.first?.decode(Bool.self, at: 1) ?? false
                var events = events
                if isLate { events = try await transaction.withoutErased(events) }
                let seen = try await seen(Set(events.map(\.record.key)).subtracting(new), transaction)
                try await transaction.take(events.filter { new.contains($0.record.key) }, now: now)
                var present: [EventCase] = []
                for event in events where seen[event.record.key]?.isSettled != true { present.append(event) }
                let largeAudiences = try await gatherMembers(&present, seen, transaction)
                try await transaction.open(largeAudiences)
                if isLate { present = try await transaction.withoutErased(present) }
                return try await decide(present, new: new, seen, transaction, now: now)
            }
        }
    }

    /// Puts the members of groups among the recipients: those who belong to it now or, for an event that was seen before,
    /// those who were told then. Statements to too many are taken out.
    ///
    /// - Returns: what was taken out of events that were not seen before.
    private func gatherMembers(
        _ events: inout [EventCase], _ seen: [UUID: Memory], _ transaction: PostgresTransaction
    ) async throws -> [LargeAudience] {
        var largeAudiences: [LargeAudience] = []
        let fresh = events.filter { seen[$0.record.key] == nil }.flatMap { event in
            event.pendingNotifications.flatMap { pending in
                pending.groupReferences.map { GroupKey(app: event.record.app, group: $0.group) }
            }
        }
        let members = try await transaction.members(of: Set(fresh), atMost: LargeAudience.threshold + 1, logger)
        for index in events.indices {
            let record = events[index].record
            let memory = seen[record.key]
            events[index].pendingNotifications = events[index].pendingNotifications.compactMap { pending in
                if memory?.largeAudiences.contains(pending.rendered.rule) == true { return nil }
                let groups = pending.groupReferences.map { groupReference in
                    (groupReference, members[GroupKey(app: record.app, group: groupReference.group), default: []])
                }
                let count = groups.reduce(pending.recipients.count) { $0 + $1.1.count }
                if memory == nil, count > LargeAudience.threshold {
                    largeAudiences.append(
                        LargeAudience(
                            event: events[index].event, rule: pending.rendered.rule, arrivedAt: record.arrivedAt,
                            named: pending.recipients.count, groupReferences: Set(pending.groupReferences.map(\.group)))
                    )
                    return nil
                }
                guard !pending.groupReferences.isEmpty else { return pending }
                return pending.joined(
                    by: memory?.users[pending.rendered.rule]
                        ?? groups.flatMap { groupReference, members in members.filter(groupReference.takes).map(\.user)
                        })
            }
        }
        return largeAudiences
    }

    /// Decides about a part of a crowd, or finds the words for what was decided.
    func decide(
        _ event: EventCase, _ memory: Memory?, _ transaction: PostgresTransaction, now: Timestamp
    ) async throws -> BatchDecisions {
        let key = event.record.key
        return try await decide(
            [event], new: memory == nil ? [key] : [], memory.map { [key: $0] } ?? [:], transaction, now: now)
    }

    /// Decides about events that nobody has decided about, and finds the words for those that somebody has.
    private func decide(
        _ events: [EventCase], new: Set<UUID>, _ seen: [UUID: Memory], _ transaction: PostgresTransaction,
        now: Timestamp
    ) async throws -> BatchDecisions {
        var batchDecisions = BatchDecisions()
        for (key, memory) in seen where memory.isSettled { batchDecisions.answers[key] = .settled }
        let fresh = events.filter { new.contains($0.record.key) }
        let news = try await transaction.news(of: fresh, now: now)
        let revoiced = events.filter { !new.contains($0.record.key) }.flatMap { event in
            event.pendingNotifications.contains { $0.localizer != nil } ? event.asked : []
        }
        var people = try await transaction.people(
            asked: fresh.flatMap(\.asked) + revoiced, charged: fresh.flatMap(\.charged),
            watched: fresh.flatMap(\.watched), now: now, logger)
        try await transaction.told(fresh, &people, now: now)
        var writes = DecisionWrites(decidedAt: now)
        for var event in events {
            event.pendingNotifications = event.pendingNotifications.flatMap { $0.localized(people) }
            let key = event.record.key
            if let memory = seen[key] {
                batchDecisions.answers[key] = .decided(memory.answers, event.pendingNotifications)
                continue
            }
            let decisions = event.decide(&people, news, now: now)
            writes.read(event)
            writes.add(event, decisions, people, spread: spread)
            batchDecisions.answers[key] = .decided(
                Dictionary(decisions.map { ($0.notification, $0.decision.answer) }) { first, _ in first },
                event.pendingNotifications)
        }
        for key in Set(fresh.flatMap(\.charged)) {
            writes.capHistory[key] = people[key]?.capHistory
            writes.dedupeUntil[key] = people[key]?.dedupeUntil
        }
        try await transaction.keep(writes, people, now: now)
        batchDecisions.unread = try await transaction.unread(Set(events.flatMap(\.counted)))
        return batchDecisions
    }

    /// What was decided about events that were seen before.
    private func seen(_ keys: Set<UUID>, _ transaction: PostgresTransaction) async throws -> [UUID: Memory] {
        guard !keys.isEmpty else { return [:] }
        var memories = Dictionary(uniqueKeysWithValues: keys.map { ($0, Memory()) })
        for row in try await transaction.query(DecisionStore.decisions(Array(keys))) {
            let until = try row.decode(Date?.self, at: 3).map(Timestamp.init)
            let key = try row.decode(UUID.self, at: 0)
            memories[key, default: Memory()].answers[try row.decode(UUID.self, at: 1)] =
                RuleDecision.Answer(word: try row.decode(String.self, at: 2), until: until)
            memories[key, default: Memory()].users[try row.decode(String.self, at: 4), default: []]
                .append(try row.decode(UserID.self, at: 5))
        }
        for (key, rules) in try await transaction.largeAudiences(of: keys) {
            memories[key, default: Memory()].largeAudiences = rules
        }
        for key in try await transaction.query(DecisionStore.settled(Array(keys))).keys {
            memories[key, default: Memory()].isSettled = true
        }
        return memories
    }

    /// In the order of the keys, so that two batches with the same events wait for each other and do not deadlock. Answers
    /// which are new, and whether somebody was forgotten after one of them had happened.
    private static func insert(_ events: [EventRecord]) -> SQL {
        let oldest = events.map(\.occurredAt).min() ?? Timestamp(milliseconds: 0)
        return """
            INSERT INTO rules.event (key, app, source, id, type, rule_set, arrived_at)
            SELECT * FROM unnest(
                \(events.map(\.key)), \(events.map(\.app.rawValue)), \(events.map(\.source)), \(events.map(\.id)),
                \(events.map(\.type)), \(events.map(\.ruleSet)), \(events.map(\.arrivedAt.date))
            ) AS new (key) ORDER BY key
            ON CONFLICT DO NOTHING
            RETURNING key, EXISTS (SELECT FROM rules.erasure WHERE erased_at >= \(oldest.date))
            """
    }

    private static func decisions(_ events: [UUID]) -> SQL {
        """
        SELECT event, notification, answer, until, rule, user_id FROM rules.decision
        WHERE event = ANY(\(events)) AND step = 0 AND \(isNotFanOut) ORDER BY user_id
        """
    }

    /// What is told in steps is published by whoever takes them.
    private static let isNotFanOut: SQL = """
        NOT EXISTS (SELECT FROM rules.crowd WHERE (crowd.event, crowd.rule) = (decision.event, decision.rule))
        """

    private static func settled(_ keys: [UUID]) -> SQL {
        """
        SELECT key FROM rules.event WHERE key = ANY(\(keys)) AND NOT EXISTS (
            SELECT FROM rules.decision WHERE decision.event = event.key AND step = 0 AND answer LIKE 'push%'
                AND \(isNotFanOut) AND NOT EXISTS (SELECT FROM rules.outcome WHERE outcome.notification = decision.notification))
        """
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

import FoundationEssentials
import Logging
import Messaging
import Postgres
import PushProtocol
import RuleEngine
import RuleLanguage
import ServiceConnections

/// Decides which users are notified of events, and stores the decisions with their effects.
struct DecisionStore: Sendable {
    let pool: PostgresPool
    /// The end of quiet hours is spread over this time, to avoid a burst for each time zone.
    var spread = RuleDecision.spread
    var logger = Logger.rules
    /// How long an event under `replace` waits for its original.
    var replacementPatience = Duration.seconds(300)
    /// The apps whose decisions are recorded.
    var recordedApps: @Sendable () -> Set<AppID> = { [] }

    struct BatchDecisions: Sendable {
        /// By event.
        var answers: [UUID: Ruling] = [:]
        /// The unread counts of users whose badge shows them.
        var unread: [PersonKey: Int] = [:]
    }

    enum Ruling: Sendable {
        /// The event is known, and all its pushes have outcomes.
        case settled
        /// The event replaces a notification that is not known yet. It is not stored, and arrives again.
        case early
        /// The answers of the event's first delivery, by notification. Then the notifications, with group members as
        /// recipients and localized for each recipient.
        case decided([UUID: RuleDecision.Answer], [NotificationDraft])
    }

    /// The stored state of a known event.
    struct KnownEvent {
        var isSettled = false
        var answers: [UUID: RuleDecision.Answer] = [:]
        var users: [String: [UserID]] = [:]
        /// Rules with a fan-out, running or finished. ``FanOutStore`` handles their recipients.
        var largeAudiences: Set<String> = []
    }

    /// Decides a batch of events in one transaction.
    ///
    /// A known event is not decided again, and its recipients' caps are not charged again. The stored decisions apply.
    ///
    /// A known event is settled when every immediate push has an outcome, because an outcome proves that the push was
    /// published. Without one, a process may have died between the commit and the publisher confirm. The event is then
    /// published again under the same ids. ``HeldStore`` publishes held notifications.
    ///
    /// - Parameter events: without duplicates.
    func storeDecisions(_ events: [EventCase], now: Timestamp) async throws -> BatchDecisions {
        guard !events.isEmpty else { return BatchDecisions() }
        return try await Outage.ofDatabase {
            try await pool.transaction { transaction in
                try await transaction.execute(AdvisoryLock.decisions.shared)
                let rows = try await transaction.query(DecisionStore.insert(events.map(\.record)))
                let new = try rows.keys
                // Rare: a user was erased after one of the events happened, or an event was revoked before it arrived.
                let isLate = try rows.first?.decode(Bool.self, at: 1) ?? false
                let revokedRows = try rows.filter { row in try row.decode(Bool.self, at: 2) }
                let revoked = try await transaction.revokedEvents(Array(revokedRows.keys))
                var events = events
                let early = try await transaction.releaseEarlyReplacements(
                    events.filter { new.contains($0.record.key) }, patience: replacementPatience, now: now)
                events.removeAll { early.contains($0.record.key) }
                if isLate { events = try await transaction.withoutErased(events) }
                let knownEvents = try await knownEvents(Set(events.map(\.record.key)).subtracting(new), transaction)
                try await transaction.take(events.filter { new.contains($0.record.key) }, now: now)
                var present: [EventCase] = []
                for event in events where knownEvents[event.record.key]?.isSettled != true { present.append(event) }
                var recorder = DecisionRecorder(recordedApps(), now: now)
                try await transaction.openChannels(
                    for: present.filter { knownEvents[$0.record.key] == nil }, now: now)
                let largeAudiences = try await gatherMembers(&present, knownEvents, &recorder, transaction)
                try await transaction.open(largeAudiences)
                try await transaction.addressChannels(&present, now: now) { event, draft in
                    knownEvents[event.record.key].map { $0.users[draft.rendered.rule] ?? [] }
                }
                try await transaction.findReplaced(&present, known: Set(knownEvents.keys))
                if isLate {
                    recorder.leaveOut(try await transaction.eventsOfErased(recorder.names(in: present), present))
                    present = try await transaction.withoutErased(present)
                }
                var batchDecisions = try await storeDecisions(
                    present, new: new, knownEvents, revoked: revoked, &recorder, transaction, now: now)
                for key in early { batchDecisions.answers[key] = .early }
                return batchDecisions
            }
        }
    }

    /// The events among these that were decided before.
    ///
    /// A lost connection leaves a transaction whose end is unknown: it may commit after the event was redelivered, and a
    /// SELECT would not see it. An insert of the same key waits for its end. It is rolled back.
    ///
    /// - Throws: if such a transaction does not end within the lock timeout; the event is then redelivered.
    func decided(among events: [UUID]) async throws -> Set<UUID> {
        guard !events.isEmpty else { return [] }
        do {
            return try await Outage.ofDatabase {
                try await pool.transaction { transaction in
                    let undecided = try await transaction.query(
                        """
                        INSERT INTO rules.event (key, app, source, id, type, rule_set, arrived_at)
                        SELECT key, '', '', '', '', key, statement_timestamp() FROM unnest(\(events)) AS new (key) ORDER BY key
                        ON CONFLICT DO NOTHING RETURNING key
                        """
                    ).keys
                    throw Probed(undecided: undecided)
                }
            }
        } catch let probed as Probed {
            return Set(events).subtracting(probed.undecided)
        }
    }

    /// Rolls the transaction of ``decided(among:)`` back.
    private struct Probed: Error {
        let undecided: Set<UUID>
    }

    /// Adds group members to the recipients: the present members or, for a known event, the recipients of its first
    /// delivery. Removes notifications with more recipients than ``LargeAudience/threshold``.
    ///
    /// - Returns: the removed notifications of new events.
    private func gatherMembers(
        _ events: inout [EventCase], _ knownEvents: [UUID: KnownEvent], _ recorder: inout DecisionRecorder,
        _ transaction: PostgresTransaction
    ) async throws -> [LargeAudience] {
        var largeAudiences: [LargeAudience] = []
        let fresh = events.filter { knownEvents[$0.record.key] == nil }.flatMap { event in
            event.drafts.flatMap { draft in
                draft.groupReferences.map { GroupKey(app: event.record.app, group: $0.group) }
            }
        }
        let members = try await transaction.members(of: Set(fresh), atMost: LargeAudience.threshold + 1, logger)
        for index in events.indices {
            let record = events[index].record
            let known = knownEvents[record.key]
            let event = events[index]
            events[index].drafts = event.drafts.compactMap { draft in
                if known?.largeAudiences.contains(draft.rendered.rule) == true { return nil }
                let groups = draft.groupReferences.map { groupReference in
                    (groupReference, members[GroupKey(app: record.app, group: groupReference.group), default: []])
                }
                let count = groups.reduce(draft.recipients.count) { $0 + $1.1.count }
                if known == nil, count > LargeAudience.threshold {
                    recorder.noteLargeAudience(of: draft.rendered.rule, event)
                    largeAudiences.append(
                        LargeAudience(
                            event: event.event, rule: draft.rendered.rule, arrivedAt: record.arrivedAt,
                            named: draft.recipients.count, groupReferences: Set(draft.groupReferences.map(\.group)))
                    )
                    return nil
                }
                guard !draft.groupReferences.isEmpty else { return draft }
                recorder.note(groups, of: event)
                return draft.joined(
                    by: known?.users[draft.rendered.rule]
                        ?? groups.flatMap { groupReference, members in
                            members.filter(groupReference.accepts).map(\.user)
                        })
            }
        }
        return largeAudiences
    }

    /// Decides one step of a fan-out, or restores the notifications of a decided step.
    func storeDecisions(
        _ event: EventCase, _ known: KnownEvent?, _ transaction: PostgresTransaction, now: Timestamp
    ) async throws -> BatchDecisions {
        let key = event.record.key
        let revoked = try await transaction.revokedEvents(known == nil ? [key] : [])
        var recorder = DecisionRecorder(recordedApps(), now: now)
        return try await storeDecisions(
            [event], new: known == nil ? [key] : [], known.map { [key: $0] } ?? [:], revoked: revoked, isPage: true,
            &recorder, transaction, now: now)
    }

    /// Decides new events, and restores the notifications of known events.
    private func storeDecisions(
        _ events: [EventCase], new: Set<UUID>, _ knownEvents: [UUID: KnownEvent], revoked: [UUID: Set<UserID?>],
        isPage: Bool = false, _ recorder: inout DecisionRecorder, _ transaction: PostgresTransaction, now: Timestamp
    ) async throws -> BatchDecisions {
        var batchDecisions = BatchDecisions()
        for (key, known) in knownEvents where known.isSettled { batchDecisions.answers[key] = .settled }
        let fresh = events.filter { new.contains($0.record.key) }
        var news = try await transaction.news(of: fresh, now: now)
        news.revoked.events = revoked
        let relocalized = events.filter { !new.contains($0.record.key) }.flatMap { event in
            event.drafts.contains { $0.localizer != nil } ? event.peopleWithSettings : []
        }
        var people = try await transaction.people(
            settingsOf: fresh.flatMap(\.peopleWithSettings) + relocalized, capsOf: fresh.flatMap(\.peopleWithCaps),
            presenceOf: fresh.flatMap(\.peopleWithPresence), now: now, logger)
        try await transaction.readDedupeKeys(fresh, &people, now: now)
        let openChannels = try await transaction.openChannels(of: events.startedSurfaces, now: now)
        var writes = DecisionWrites(decidedAt: now)
        for var event in events {
            let key = event.record.key
            let isRecorded = knownEvents[key] == nil && recorder.add(event, isPage: isPage, people, news)
            event.drafts = event.drafts.flatMap { $0.localized(people) }.map { $0.starting(on: openChannels) }
            if let known = knownEvents[key] {
                batchDecisions.answers[key] = .decided(known.answers, event.drafts)
                continue
            }
            let decisions = event.decisions(&people, news, now: now)
            if isRecorded { recorder.count(decisions.count) }
            writes.read(event)
            writes.add(event, decisions, people, spread: spread)
            batchDecisions.answers[key] = .decided(
                Dictionary(decisions.map { ($0.notification, $0.decision.answer) }) { first, _ in first },
                event.drafts)
        }
        for key in Set(fresh.flatMap(\.peopleWithCaps)) {
            writes.capHistory[key] = people[key]?.capHistory
            writes.dedupeUntil[key] = people[key]?.dedupeUntil
        }
        try await transaction.keep(writes, people, now: now)
        try await transaction.keep(recorder.recordings)
        batchDecisions.unread = try await transaction.unread(Set(events.flatMap(\.peopleWithUnreadBadge)))
        return batchDecisions
    }

    /// Reads the stored state of known events.
    private func knownEvents(_ keys: Set<UUID>, _ transaction: PostgresTransaction) async throws -> [UUID: KnownEvent] {
        guard !keys.isEmpty else { return [:] }
        var memories = Dictionary(uniqueKeysWithValues: keys.map { ($0, KnownEvent()) })
        for row in try await transaction.query(DecisionStore.decisions(Array(keys))) {
            let until = try row.decode(Date?.self, at: 3).map(Timestamp.init)
            let key = try row.decode(UUID.self, at: 0)
            memories[key, default: KnownEvent()].answers[try row.decode(UUID.self, at: 1)] =
                RuleDecision.Answer(word: try row.decode(String.self, at: 2), until: until)
            memories[key, default: KnownEvent()].users[try row.decode(String.self, at: 4), default: []]
                .append(try row.decode(UserID.self, at: 5))
        }
        for (key, rules) in try await transaction.largeAudiences(of: keys) {
            memories[key, default: KnownEvent()].largeAudiences = rules
        }
        for key in try await transaction.query(DecisionStore.settled(Array(keys))).keys {
            memories[key, default: KnownEvent()].isSettled = true
        }
        return memories
    }

    /// Inserts events in key order, so that two batches with the same events wait for each other and do not deadlock.
    /// Returns the keys of new events, whether a user was erased after the oldest event, and whether the event is
    /// revoked.
    private static func insert(_ events: [EventRecord]) -> SQL {
        let oldest = events.map(\.occurredAt).min() ?? Timestamp(milliseconds: 0)
        return """
            INSERT INTO rules.event (key, app, source, id, type, rule_set, arrived_at)
            SELECT * FROM unnest(
                \(events.map(\.key)), \(events.map(\.app.rawValue)), \(events.map(\.source)), \(events.map(\.id)),
                \(events.map(\.type)), \(events.map(\.ruleSet)), \(events.map(\.arrivedAt.date))
            ) AS new (key) ORDER BY key
            ON CONFLICT DO NOTHING
            RETURNING key, EXISTS (SELECT FROM rules.erasure WHERE erased_at >= \(oldest.date)),
                EXISTS (SELECT FROM rules.revocation
                    WHERE revocation.app = event.app AND revocation.event_id = event.id)
            """
    }

    private static func decisions(_ events: [UUID]) -> SQL {
        """
        SELECT event, notification, answer, until, rule, user_id FROM rules.decision
        WHERE event = ANY(\(events)) AND step = 0 AND \(isNotFanOut) ORDER BY user_id
        """
    }

    /// Excludes the decisions of fan-outs.
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

extension [EventCase] {
    /// The items of surfaces that start on channels, if they have any.
    fileprivate var startedSurfaces: [ItemKey] {
        let drafts = flatMap(\.drafts).filter { !$0.isToChannels }
        return Set(drafts.compactMap(\.channelItem)).sorted()
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

import FoundationEssentials
import Postgres
import PushProtocol
import RuleEngine
import RuleLanguage

extension PostgresTransaction {
    /// Takes new events back that replace texts of unknown items: their originals may still arrive.
    ///
    /// An event with signals or other notifications is decided now, and so is an event older than `patience`.
    ///
    /// - Returns: the keys of the events that are not decided.
    func releaseEarlyReplacements(
        _ events: [EventCase], patience: Duration, now: Timestamp
    ) async throws -> Set<UUID> {
        // An original in the same batch is not decided yet.
        let others = Set(
            events.flatMap { event in
                event.drafts.compactMap { draft in draft.replacement == nil ? draft.ruleAndItem : nil }
            })
        let young = events.filter { event in
            event.signals.isEmpty && !event.drafts.isEmpty && event.drafts.allSatisfy { $0.replacement != nil }
                && (event.record.arrivedAt + patience > now
                    || event.drafts.contains { $0.ruleAndItem.map(others.contains) ?? false })
        }
        let asked = ReplacementRows.Asked.all(of: young)
        guard !asked.isEmpty else { return [] }
        var known: Set<UUID> = []
        for row in try await query(ReplacementRows.known(asked)) { known.insert(try row.decode(at: 0)) }
        let early = Set(asked.map(\.event)).subtracting(known)
        guard !early.isEmpty else { return [] }
        try await execute("DELETE FROM rules.event WHERE key = ANY(\(early.sorted { $0.uuidString < $1.uuidString }))")
        return early
    }

    /// Gives the drafts of `replace` their recipients: the users of the item's latest notifications, or of the pushes
    /// that a known event has stored.
    func findReplaced(_ events: inout [EventCase], known: Set<UUID>) async throws {
        guard events.contains(where: { $0.drafts.contains { $0.replacement != nil } }) else { return }
        let fresh = events.filter { !known.contains($0.record.key) }
        let asked = ReplacementRows.Asked.all(of: fresh)
        var large: Set<ReplacementRows.Place> = []
        for one in asked where try await query(ReplacementRows.isLarge(one)).single(Bool.self) {
            large.insert(one.place)
        }
        var found = try await replaced(asked.filter { !large.contains($0.place) })
        let stored = events.map(\.record.key).filter(known.contains)
        if !stored.isEmpty {
            for row in try await query(ReplacementRows.stored(stored)) {
                let place = ReplacementRows.Place(event: try row.decode(at: 0), rule: try row.decode(at: 1))
                found[place, default: []].append(
                    ReplacedNotification(
                        user: try row.decode(at: 2), notification: try row.decode(at: 3), state: .pushed,
                        expiresAt: try row.decode(Date?.self, at: 4).map(Timestamp.init),
                        decidedAt: Timestamp(try row.decode(Date.self, at: 5))))
            }
        }
        for index in events.indices {
            let key = events[index].record.key
            events[index].drafts = events[index].drafts.flatMap { draft in
                guard draft.replacement != nil else { return [draft] }
                let place = ReplacementRows.Place(event: key, rule: draft.rendered.rule)
                let originals = found[place] ?? []
                return draft.replacing(
                    originals,
                    isTooLarge: large.contains(place) || originals.count > Replacement.maximumNotifications)
            }
        }
    }

    /// Reads the latest notification of each user about the items, with its state. Locks the waiting ones.
    private func replaced(
        _ asked: [ReplacementRows.Asked]
    ) async throws -> [ReplacementRows.Place: [ReplacedNotification]] {
        guard !asked.isEmpty else { return [:] }
        var chosen: [ReplacementRows.Chosen] = []
        for (number, one) in asked.enumerated() {
            for row in try await query(ReplacementRows.latest(one)) {
                chosen.append(
                    ReplacementRows.Chosen(number: number, asked: one, notification: try row.decode(at: 0)))
            }
        }
        guard !chosen.isEmpty else { return [:] }
        let notifications = chosen.map(\.notification)
        // A worker that releases one of them, or closes its digest, ends first. The next statement sees its result.
        _ = try await query(
            """
            SELECT notification FROM rules.held WHERE notification = ANY(\(notifications))
            ORDER BY notification FOR UPDATE
            """)
        _ = try await query(RevocationStore.lockDigests(of: notifications))
        var found: [ReplacementRows.Place: [ReplacedNotification]] = [:]
        for row in try await query(ReplacementRows.states(chosen)) {
            let one = asked[try row.decode(Int.self, at: 0)]
            found[one.place, default: []].append(try ReplacedNotification(row, lifetime: one.lifetime))
        }
        return found
    }

    /// Stores new texts of held notifications, entries of digests and inbox items, and the pushes that replace copies.
    func keepReplacements(_ writes: DecisionWrites, now: Timestamp) async throws {
        if !writes.replacedWords.isEmpty {
            try await execute(ReplacementRows.insertRendered(writes.replacedWords, now: now))
            try await execute(ReplacementRows.updateHeld(writes.replacedWords))
            try await execute(ReplacementRows.updateEntries(writes.replacedWords))
            try await execute(ReplacementRows.updateInbox(writes.replacedWords, now: now))
            try await execute(ErasureStore.unusedRenderings(writes.replacedWords.compactMap(\.original.rendered)))
        }
        if !writes.replacingPushes.isEmpty {
            try await execute(ReplacementRows.insertPushes(writes.replacingPushes, now: now))
        }
    }
}

extension NotificationDraft {
    fileprivate var ruleAndItem: [String]? {
        item.map { [$0.app.rawValue, rendered.rule, $0.item] }
    }
}

extension ReplacedNotification {
    /// - Parameter row: of ``ReplacementRows/states(_:)``.
    fileprivate init(_ row: PostgresRow, lifetime: Duration?) throws {
        let answer = try row.decode(String.self, at: 3)
        let reason = try row.decode(String.self, at: 4)
        let decidedAt = Timestamp(try row.decode(Date.self, at: 5))
        let isWaiting = try row.decode(Bool.self, at: 6)
        let isInInbox = try row.decode(Bool.self, at: 7)
        let isPushed = answer == "push" || answer == "push-quietly"
        let stored = try row.decode(Date?.self, at: 13).map(Timestamp.init)
        self.init(
            user: try row.decode(at: 1), notification: try row.decode(at: 2),
            state: isWaiting
                ? .waiting : isPushed && reason != "noiseless" ? .pushed : isInInbox ? .kept : .gone,
            isAnswered: try row.decode(at: 8), isInInbox: isInInbox, isRead: try row.decode(at: 9),
            isRevoked: try row.decode(at: 10), isOvertaken: try row.decode(at: 11),
            expiresAt: stored ?? lifetime.map { decidedAt + $0 }, decidedAt: decidedAt,
            rendered: try row.decode(UUID?.self, at: 12))
    }
}

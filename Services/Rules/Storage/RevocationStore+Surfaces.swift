import DecisionLog
import FoundationEssentials
import Messaging
import Postgres
import PushProtocol
import RuleEngine
import ServiceConnections

extension RevocationStore {
    /// The longest time by which an event's clock may be ahead of ours.
    private static let clockTolerance = Duration.seconds(30 * 86_400)

    /// Finds the live surfaces that notifications of a step started, and drops their waiting updates. Stores that their
    /// later events are revoked, and a decision about each end. Leaves a surface that has ended, or that a later event has
    /// started again.
    ///
    /// A start has one notification for each kind of platform. The revocation of one notification ends the surface on all
    /// platforms.
    ///
    /// - Returns: the ends to publish. A repeated step returns the same.
    func endSurfaces(of step: Step, _ work: Work, now: Timestamp) async throws -> [SurfaceEnd] {
        guard !step.notifications.isEmpty else { return [] }
        return try await Outage.ofDatabase {
            try await pool.transaction { transaction in
                let items = try await transaction.query(Self.startedItems(step.notifications)).map { row in
                    ItemKey(app: work.app, item: try row.decode(at: 0))
                }
                guard !items.isEmpty else { return [] }
                try await transaction.lock(Set(items))
                var isOfOne = false
                if case .notification = work.revocation.target { isOfOne = true }
                var ends: [SurfaceEnd] = []
                var started: [SurfaceKey: Date] = [:]
                let surfaces = Self.startedSurfaces(step.notifications, withSiblings: isOfOne)
                for row in try await transaction.query(surfaces) {
                    let end = SurfaceEnd(
                        app: work.app, user: try row.decode(at: 2), start: try row.decode(at: 3),
                        startRule: try row.decode(at: 4), item: try row.decode(at: 0), event: try row.decode(at: 5))
                    ends.append(end)
                    let only = isOfOne || work.revocation.user != nil ? end.user : nil
                    started[SurfaceKey(item: end.item, user: only)] = try row.decode(Date.self, at: 1)
                }
                guard !ends.isEmpty else { return [] }
                let ofAll = Set(started.keys.filter { $0.user == nil }.map { ItemKey(app: work.app, item: $0.item) })
                let channels = try await transaction.endChannels(of: Array(ofAll), now: now)
                ends += SurfaceEnd.ends(of: channels, ends)
                try await transaction.execute(Self.keepRevoked(started, work))
                let held = try await transaction.withdrawUpdates(
                    started.keys.map { $0.withdrawal(work, until: now + Self.clockTolerance) }, now: now)
                try await transaction.execute(
                    "UPDATE rules.revocation SET held = held + \(held) WHERE id = \(work.revocation.id)")
                try await transaction.execute(Self.decide(ends, now: now))
                return ends
            }
        }
    }

    /// A surface, of one user or of all.
    private struct SurfaceKey: Hashable {
        var item: String
        var user: UserID?

        var order: (String, String) { (item, user?.rawValue ?? "") }

        func id(_ revocation: UUID) -> UUID { DerivedID.uuid5(revocation, ["surface", item, user?.rawValue ?? ""]) }

        func withdrawal(_ work: Work, until: Timestamp) -> ItemWithdrawal {
            ItemWithdrawal(
                item: ItemKey(app: work.app, item: item), until: until,
                revocation: ItemWithdrawal.RevokeSignal(
                    id: id(work.revocation.id), user: user, keepsInbox: true, place: work.revocation.requestedBy))
        }
    }

    private static func startedItems(_ notifications: [UUID]) -> SQL {
        """
        SELECT DISTINCT about.item FROM unnest(\(notifications)) AS chosen (notification)
            JOIN rules.decision ON decision.notification = chosen.notification AND decision.step = 0
            JOIN rules.event_item AS about ON (about.event, about.rule) = (decision.event, decision.rule)
        WHERE about.starts_surface AND decision.answer = 'push'
        """
    }

    /// - Parameter siblings: whether to return the user's starts on other platforms too.
    private static func startedSurfaces(_ notifications: [UUID], withSiblings siblings: Bool) -> SQL {
        """
        SELECT about.item, about.occurred_at, start.user_id, start.notification, start.rule, event.id
        FROM unnest(\(notifications)) AS chosen (notification)
            JOIN rules.decision ON decision.notification = chosen.notification AND decision.step = 0
            JOIN rules.event_item AS about ON (about.event, about.rule) = (decision.event, decision.rule)
            JOIN rules.event ON event.key = decision.event
            JOIN rules.event_item AS other
                ON (other.event, other.item) = (about.event, about.item) AND other.starts_surface
                    AND (\(siblings) OR other.rule = about.rule)
            JOIN rules.decision AS start
                ON (start.event, start.rule, start.user_id) = (decision.event, other.rule, decision.user_id)
                    AND start.step = 0 AND start.answer = 'push'
        WHERE about.starts_surface AND decision.answer = 'push'
            AND NOT EXISTS (
                SELECT FROM rules.event_item AS later
                WHERE later.starts_surface AND (later.app, later.item) = (about.app, about.item)
                    AND later.occurred_at > about.occurred_at)
            AND NOT EXISTS (
                SELECT FROM rules.done
                WHERE (done.app, done.item) = (about.app, about.item) AND done.at >= about.occurred_at)
        ORDER BY start.notification
        """
    }

    private static func keepRevoked(_ started: [SurfaceKey: Date], _ work: Work) -> SQL {
        let rows = started.sorted { $0.key.order < $1.key.order }
        return """
            INSERT INTO rules.revocation (id, app, item, until_at, user_id, inbox, source, requested_by, due_at, ended_at,
                is_of_surface)
            SELECT id, \(work.app.rawValue), item, until_at, user_id, 'keep', \(work.revocation.source.rawValue),
                \(work.revocation.requestedBy), NULL, clock_timestamp(), true
            FROM unnest(
                \(rows.map { $0.key.id(work.revocation.id) }), \(rows.map(\.key.item)), \(rows.map(\.value)),
                \(rows.map(\.key.user?.rawValue))
            ) AS new (id, item, until_at, user_id)
            ON CONFLICT DO NOTHING
            """
    }

    /// Stores the decisions about the ends. They follow from no event, so that they have no step 0.
    private static func decide(_ ends: [SurfaceEnd], now: Timestamp) -> SQL {
        """
        INSERT INTO rules.decision (notification, step, event, rule, user_id, decided_at, answer, reason)
        SELECT new.notification, 1, decision.event, new.rule, new.user_id, \(now.date), 'push',
            \(RuleDecision.Cause.surfaceEnded.rawValue)
        FROM unnest(
            \(ends.map(\.notification)), \(ends.map(\.start)), \(ends.map { $0.rule ?? "" }),
            \(ends.map(\.user.rawValue))
        ) AS new (notification, start, rule, user_id)
            JOIN rules.decision ON decision.notification = new.start AND decision.step = 0
        ORDER BY new.notification
        ON CONFLICT DO NOTHING
        """
    }
}

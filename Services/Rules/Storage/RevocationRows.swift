import DecisionLog
import FoundationEssentials
import Postgres
import PushProtocol
import RuleEngine
import RuleLanguage

/// An item whose pending notifications are withdrawn, because it is done or revoked.
struct ItemWithdrawal {
    var item: ItemKey
    /// The time of the event. Notifications of later events stay.
    var until: Timestamp
    /// `nil` for an item that is done.
    var revocation: RevokeSignal?
    /// For an item that is done by a receipt: the only user whose notifications are withdrawn.
    var doneBy: UserID?

    /// The only user whose notifications are withdrawn; `nil`: all users.
    var onlyUser: UserID? { doneBy ?? revocation?.user }

    struct RevokeSignal {
        /// Derived from the event and the place in the rule file.
        var id: UUID
        var user: UserID?
        var keepsInbox: Bool
        var place: String
    }

    var reason: RuleDecision.Cause { revocation == nil ? .done : .revoked }

    /// The withdrawals of events: one of each done item, and each revocation.
    static func all(of events: [EventCase]) -> [ItemWithdrawal] {
        var done: [ItemKey: Timestamp] = [:]
        var revocations: [ItemWithdrawal] = []
        for event in events {
            let (app, moment) = (event.record.app, event.record.occurredAt)
            for signal in event.signals {
                switch signal {
                case .done(let item):
                    let key = ItemKey(app: app, item: item)
                    done[key] = max(done[key] ?? moment, moment)
                case .revoke(let item, let user, let keepsInbox, let place):
                    let id = DerivedID.uuid5(event.record.key, ["revocation", place])
                    revocations.append(
                        ItemWithdrawal(
                            item: ItemKey(app: app, item: item), until: moment,
                            revocation: RevokeSignal(id: id, user: user, keepsInbox: keepsInbox, place: place)))
                case .present, .gone, .read, .membership: break
                }
            }
        }
        return done.sorted { $0.key < $1.key }.map { ItemWithdrawal(item: $0.key, until: $0.value) } + revocations
    }
}

extension PostgresTransaction {
    /// Stores the revocations of rule files. ``NotificationRevoker`` carries them out after the transaction.
    func keepRevocations(_ withdrawals: [ItemWithdrawal]) async throws {
        let rows = withdrawals.compactMap { one in one.revocation.map { (one, $0) } }
        guard !rows.isEmpty else { return }
        try await execute(
            """
            INSERT INTO rules.revocation (id, app, item, until_at, user_id, inbox, source, requested_by)
            SELECT id, app, item, until_at, user_id, inbox, 'rule', place FROM unnest(
                \(rows.map(\.1.id)), \(rows.map(\.0.item.app.rawValue)), \(rows.map(\.0.item.item)),
                \(rows.map(\.0.until.date)), \(rows.map(\.1.user?.rawValue)),
                \(rows.map { ($0.1.keepsInbox ? Revocation.Inbox.keep : .remove).rawValue }),
                \(rows.map(\.1.place))
            ) AS new (id, app, item, until_at, user_id, inbox, place) ORDER BY id
            ON CONFLICT DO NOTHING
            """)
    }

    /// Stores the items of events in apps whose rules revoke items, and of starts of live surfaces in all apps.
    func keepItems(of events: [EventCase]) async throws {
        var rows: [(event: UUID, item: ItemKey, at: Date, draft: NotificationDraft)] = []
        for event in events {
            for draft in event.drafts where event.storesItems || draft.terms.startsSurface {
                guard let item = draft.item else { continue }
                rows.append((event.record.key, item, event.record.occurredAt.date, draft))
            }
        }
        guard !rows.isEmpty else { return }
        try await execute(
            """
            INSERT INTO rules.event_item (event, rule, app, item, occurred_at, is_replacement, starts_surface)
            SELECT * FROM unnest(
                \(rows.map(\.event)), \(rows.map(\.draft.rendered.rule)), \(rows.map(\.item.app.rawValue)),
                \(rows.map(\.item.item)), \(rows.map(\.at)), \(rows.map { $0.draft.replacement != nil }),
                \(rows.map(\.draft.terms.startsSurface))
            ) AS new (event, rule, app, item, occurred_at, is_replacement, starts_surface) ORDER BY event, rule
            ON CONFLICT DO NOTHING
            """)
    }

    /// The revoked events among these, with the users of each; `nil` stands for all users.
    func revokedEvents(_ events: [UUID]) async throws -> [UUID: Set<UserID?>] {
        guard !events.isEmpty else { return [:] }
        var users: [UUID: Set<UserID?>] = [:]
        for row in try await query(
            """
            SELECT event.key, revocation.user_id FROM rules.event
                JOIN rules.revocation ON revocation.app = event.app AND revocation.event_id = event.id
            WHERE event.key = ANY(\(events))
            """)
        {
            users[try row.decode(UUID.self, at: 0), default: []].insert(try row.decode(UserID?.self, at: 1))
        }
        return users
    }
}

package import FoundationEssentials
package import PushProtocol

/// The revocations that are stored when events are decided. They revoke notifications that are decided later.
package struct RevocationState: Hashable, Sendable {
    /// The users of each revoked event, by its key; `nil` stands for all users.
    package var events: [UUID: Set<UserID?>] = [:]
    /// The time up to which events about an item are revoked, by user; `nil` stands for all users.
    package var items: [ItemKey: [UserID?: Timestamp]] = [:]

    package init() {}

    /// Revokes an item's events up to a time, for one user or for all. The latest time counts.
    package mutating func revoke(_ item: ItemKey, _ user: UserID?, until moment: Timestamp) {
        let known = items[item]?[user] ?? moment
        items[item, default: [:]][user] = max(known, moment)
    }

    /// Whether a revocation covers a notification.
    ///
    /// - Parameters:
    ///   - event: the event's key.
    ///   - user: the recipient; `nil` asks about all recipients together.
    package func covers(_ event: UUID, _ item: ItemKey?, _ user: UserID?, occurredAt: Timestamp) -> Bool {
        if let users = events[event], users.contains(nil) || users.contains(user) { return true }
        guard let item, let moments = items[item] else { return false }
        return [nil, user].contains { moments[$0].map { $0 >= occurredAt } ?? false }
    }
}

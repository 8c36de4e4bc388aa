import PushProtocol
import RuleEngine
import RuleLanguage

/// A group of a dry run: `rules.circle` and `rules.member` in memory.
///
/// The latest event about a member counts, by the time of the event.
struct DryRunGroup: Sendable {
    private struct Entry: Sendable {
        var role: String?
        var hasLeft: Bool
        var at: Timestamp
    }

    /// The time of the latest event that listed the whole group.
    private var listedAt: Timestamp?
    private var entries: [UserID: Entry] = [:]

    /// The present members, sorted by id.
    var members: [GroupReference.Member] {
        entries.filter { !$0.value.hasLeft }.map { GroupReference.Member(user: $0.key, role: $0.value.role) }
            .sorted { FanOutPage.precedes($0.user.rawValue, $1.user.rawValue) }
    }

    init() {}

    /// A group with these members since `moment`.
    init(_ members: [GroupReference.Member], at moment: Timestamp) {
        for member in members { entries[member.user] = Entry(role: member.role, hasLeft: false, at: moment) }
    }

    mutating func add(_ user: UserID, role: String?) {
        entries[user] = Entry(role: role, hasLeft: false, at: Timestamp(milliseconds: 0))
    }

    /// Applies the membership change of an event at `moment`.
    mutating func take(_ users: [UserID: String?], _ change: MembershipSource.Change, at moment: Timestamp) {
        if change == .members {
            listedAt = max(listedAt ?? moment, moment)
            for (user, entry) in entries where !entry.hasLeft && entry.at <= moment && users[user] == nil {
                entries[user] = Entry(role: entry.role, hasLeft: true, at: moment)
            }
        }
        if let listedAt, listedAt > moment { return }
        for (user, role) in users where entries[user].map({ $0.at <= moment }) ?? true {
            entries[user] = Entry(role: change == .left ? nil : role, hasLeft: change == .left, at: moment)
        }
    }
}

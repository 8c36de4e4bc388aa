import PushProtocol

@testable import RegistryStore

/// Group memberships, changed in batches. Times are always given.
extension RegistryModel {
    struct Membership: Hashable {
        var user: UserID
        var group: UserGroup
    }

    /// The last change of a membership.
    struct Word: Hashable {
        var joins: Bool
        var at: Timestamp
    }

    /// Returns the number of memberships changed, or confirmed at a later time.
    mutating func apply(_ changes: [MembershipChange]) -> Int {
        let valid = changes.filter { isAfterErasure($0.at!, of: $0.user) }
        let said = Dictionary(grouping: valid) { Membership(user: $0.user, group: $0.group) }
        var count = 0
        for (membership, changes) in said {
            let last = changes.reduce(changes[0]) { $1.at! >= $0.at! ? $1 : $0 }
            if let known = words[membership], known.at > last.at! { continue }
            words[membership] = Word(joins: last.joins, at: last.at!)
            count += 1
        }
        return count
    }

    func topics(of user: UserID) -> Set<GroupName> {
        Set(
            words.compactMap { membership, word in
                guard membership.user == user, word.joins, case .topic(let name) = membership.group else { return nil }
                return name
            })
    }

    /// Forgets memberships that ended long ago. Returns their number.
    mutating func forgetMemberships() -> Int {
        let before = words.count
        words = words.filter { $1.joins || now - $1.at <= .seconds(90 * 86_400) }
        return before - words.count
    }
}

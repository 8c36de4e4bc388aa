/// What an app's rules do with the number on its icon.
enum BadgeUse: Hashable, Sendable {
    /// It is how much is unread.
    case unread
    /// It is what events or the file say, so that only one thing is known of it: when nothing is unread, it is to go.
    case other
    case none

    /// The number that an icon is corrected to; `nil`: it is left alone.
    func correction(unread: Int) -> Int? {
        switch self {
        case .unread: unread
        case .other: unread == 0 ? 0 : nil
        case .none: nil
        }
    }
}

extension RuleSet {
    var badgeUse: BadgeUse {
        if rules.contains(where: { $0.how.countsUnread }) { return .unread }
        return rules.contains { $0.how.badge != nil } ? .other : .none
    }
}

/// How an app's rules set the badge, the number on the app's icon.
enum BadgeUse: Hashable, Sendable {
    /// The badge is the number of unread inbox items.
    case unread
    /// The badge is a value of events or a constant. Without unread items it is corrected to 0; other values stay.
    case other
    case none

    /// Returns the corrected badge; `nil`: the badge stays unchanged.
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

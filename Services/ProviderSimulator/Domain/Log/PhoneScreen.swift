/// A phone and what is on its screen, the newest first.
struct PhoneScreen: Sendable {
    let phone: Phone
    let notifications: [ShownNotification]
}

extension RequestLog {
    /// The screens of `phones`, made of the requests that are still kept. A notification that a later one with the same
    /// collapse id replaced is not on them.
    func screens(of phones: some Collection<Phone>, notifications limit: Int) -> [PhoneScreen] {
        let wanted = Set(phones.map(\.id))
        var shown: [Phone.ID: [ShownNotification]] = [:]
        for party in Set(phones.map(\.id.party)) {
            for entry in requests(of: party).reversed() where entry.verdict.isDelivered {
                guard let token = entry.verdict.target else { continue }
                let id = Phone.ID(party: party, token: token)
                guard wanted.contains(id), shown[id, default: []].count < limit,
                    let notification = ShownNotification(entry)
                else { continue }
                let isReplaced = shown[id, default: []].contains {
                    $0.collapseID != nil && $0.collapseID == notification.collapseID
                }
                if !isReplaced { shown[id, default: []].append(notification) }
            }
        }
        return phones.map { PhoneScreen(phone: $0, notifications: shown[$0.id] ?? []) }
    }
}

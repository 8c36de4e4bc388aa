import PushProtocol

/// Everybody a batch of notifications is to. A user is looked up once, and hashed once for each time they are named.
struct BatchRecipients: Hashable, Sendable {
    /// Each user once.
    private(set) var users: [AppUser] = []
    /// For each notification, where its recipients stand in ``users``, in their order.
    private(set) var places: [[Int]] = []

    init(of notifications: [Notification]) {
        let count = notifications.reduce(0) { $0 + $1.recipients.count }
        var known = [AppUser: Int](minimumCapacity: count)
        users.reserveCapacity(count)
        places.reserveCapacity(notifications.count)
        for notification in notifications {
            places.append(
                notification.recipients.map { recipient in
                    let user = AppUser(app: notification.app, user: recipient.user)
                    let place = Self.entered(&known[user, default: users.count])
                    if place == users.count { users.append(user) }
                    return place
                })
        }
    }

    /// The place that is there, or else the default: by way of an `inout` that is found and entered at once.
    private static func entered(_ place: inout Int) -> Int { place }
}

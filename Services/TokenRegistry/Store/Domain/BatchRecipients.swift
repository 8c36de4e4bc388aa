package import PushProtocol

/// The distinct recipients of a batch of notifications. Each user is looked up once.
package struct BatchRecipients: Hashable, Sendable {
    /// Each user once.
    package private(set) var users: [AppUser] = []
    /// For each notification, the indices of its recipients in ``users``, in order.
    package private(set) var places: [[Int]] = []

    package init(of notifications: [Notification]) {
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

    /// Returns the stored index or the inserted default. An `inout` access finds and inserts with one hash.
    private static func entered(_ place: inout Int) -> Int { place }
}

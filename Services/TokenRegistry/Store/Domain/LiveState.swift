package import PushProtocol
package import FoundationEssentials

/// The state of a live surface for one user: the message that updates or ends it.
package struct LiveState: Hashable, Sendable {
    package var user: AppUser
    /// The scope of the Live Activity's tokens.
    package var scope: String
    /// The message, with this user as its only recipient.
    package var message: Notification
    /// `aps.timestamp`, by which devices order states, in Unix seconds.
    package var at: Int64
    package var isEnd: Bool
    /// Whether a phone of the user has not reported its token yet.
    package var isAwaited: Bool

    /// The notification of the state for its user.
    var notification: UUID { message.recipients[0].notification }
}

extension LiveState {
    /// The states of a message, one for each recipient; empty unless it updates or ends a Live Activity.
    ///
    /// - Parameter devices: the registrations of each recipient, in their order.
    package static func all(in notification: Notification, devices: [[Registration]]) -> [LiveState] {
        guard let scope = notification.scope, TargetKinds(notification.content).apns == .liveActivity,
            let aps = notification.content.apns?.payload?[path: "aps"], let at = aps["timestamp"]?.int
        else { return [] }
        let isEnd = aps["event"]?.string == "end"
        return zip(notification.recipients, devices).map { recipient, registrations in
            var message = notification
            message.recipients = [recipient]
            return LiveState(
                user: AppUser(app: notification.app, user: recipient.user), scope: scope, message: message, at: at,
                isEnd: isEnd, isAwaited: registrations.awaitActivity(scope))
        }
    }

    /// The message for a device that has reported its token after the state was sent.
    ///
    /// It has an id of its own, and the same notification: `explain` lists the device with the others.
    package func message(to device: UUID) -> Notification {
        var message = message
        message.trace = message.trace.next(id: DerivedID.uuid5(message.trace.id, ["late", device.uuidString]))
        return message
    }
}

extension [Registration] {
    /// Whether a phone can start a Live Activity and has not reported the token of the one with this scope. A user
    /// without any token of the scope may have started the activity in the app.
    fileprivate func awaitActivity(_ scope: String) -> Bool {
        let reported = filter { $0.kind == .liveActivity && $0.scope == scope }
        guard !reported.isEmpty else { return contains { $0.kind == .pushToStart || $0.kind == .alert } }
        let installations = Set(reported.map(\.installation))
        return contains { $0.kind == .pushToStart && !installations.contains($0.installation) }
    }
}

package import FoundationEssentials

/// Notifications that are not to be sent any more. Exchange `notifications`, routing key `revoked.<app>`; every sender
/// process reads it from the stream ``StreamName/senderRevocations``. Published at least once; a repeat does no harm.
package struct NotificationRevocation: WireMessage, Hashable {
    package static let messageType = "heliograph.notification-revocation"
    package static let messageVersion = 1
    /// The most notifications that one message may name.
    package static let maximumNotifications = 500

    package var trace: Trace
    package var app: AppID
    /// Notification ids, each of one user.
    package var notifications: [UUID]
    /// When they were revoked.
    package var at: Timestamp

    package init(trace: Trace, app: AppID, notifications: [UUID], at: Timestamp) {
        self.trace = trace
        self.app = app
        self.notifications = notifications
        self.at = at
    }
}

/// One message of the stream ``StreamName/senderRevocations``.
package enum SenderRevocation: Hashable, Sendable {
    case device(DeviceEvent)
    case notifications(NotificationRevocation)

    /// Reads a body by its member `type`.
    ///
    /// - Throws: a ``WireError`` for a body that is neither, or newer than this build.
    package init(wireBody body: [UInt8]) throws(WireError) {
        do throws(WireError) {
            self = .device(try .decode(wireBody: body))
        } catch .invalid(path: "type", _) {
            // Nearly every message is a device event, so that only the others are read twice.
            self = .notifications(try .decode(wireBody: body))
        }
    }
}

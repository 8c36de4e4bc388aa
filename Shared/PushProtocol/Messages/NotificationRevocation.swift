package import FoundationEssentials

/// Revoked notifications, which senders must not send. Exchange `notifications`, routing key `revoked.<app>`. Every
/// sender process reads it from the stream ``StreamName/senderRevocations``. Published at least once; duplicates are
/// harmless.
package struct NotificationRevocation: WireMessage, Codable, Hashable {
    package static let messageType = "heliograph.notification-revocation"
    package static let messageVersion = 1
    /// The maximum number of notifications in one message.
    package static let maximumNotifications = 500

    package var trace: Trace
    package var app: AppID
    /// Notification ids, each of one user.
    package var notifications: [UUID]
    /// When they were revoked.
    package var at: Timestamp

    package var notificationIDs: [UUID] { notifications }

    package init(trace: Trace, app: AppID, notifications: [UUID], at: Timestamp) {
        self.trace = trace
        self.app = app
        self.notifications = notifications
        self.at = at
    }
}

/// A message of the stream ``StreamName/senderRevocations``.
package enum SenderRevocation: Hashable, Sendable {
    case device(DeviceEvent)
    case notifications(NotificationRevocation)

    /// Decodes a body by its member `type`.
    ///
    /// - Throws: ``WireError`` for any other type, or a version newer than this build.
    package init(wireBody body: [UInt8]) throws(WireError) {
        do throws(WireError) {
            self = .device(try .decode(wireBody: body))
        } catch .invalid(path: "type", _) {
            // Tries device events first, because nearly all messages are.
            self = .notifications(try .decode(wireBody: body))
        }
    }
}

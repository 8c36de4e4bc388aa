import AMQP
import FoundationEssentials
import Messaging
import PushProtocol

extension NotificationRevocation {
    /// Returns the messages that revoke these notifications, with at most ``maximumNotifications`` each. Their ids
    /// follow from the notifications.
    ///
    /// - Parameters:
    ///   - moment: when they were revoked.
    ///   - service: the publisher.
    static func messages(
        revoking notifications: [UUID], of app: AppID, at moment: Timestamp, from service: String
    ) throws(WireError) -> [AMQPMessage] {
        try outbound(revoking: notifications, of: app, at: moment).map { $0.message(from: service) }
    }

    /// The same messages, for a stage that publishes them.
    static func outbound(
        revoking notifications: [UUID], of app: AppID, at moment: Timestamp
    ) throws(WireError) -> [Outbound] {
        try notifications.chunks(ofAtMost: maximumNotifications).map { part throws(WireError) in
            let id = DerivedID.uuid5(DerivedID.namespace, "revoked", ids: part)
            let text = id.uuidString.lowercased()
            let revocation = NotificationRevocation(
                trace: Trace(id: id, correlation: text, causation: text), app: app, notifications: part, at: moment)
            return try Outbound(revocation, to: .notifications, routingKey: RoutingKey.revocation(app))
        }
    }
}

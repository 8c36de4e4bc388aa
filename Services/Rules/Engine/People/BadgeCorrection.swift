package import PushProtocol
import FoundationEssentials

/// The message that corrects badges after a read.
package enum BadgeCorrection {
    /// The delay after the first read. Later reads within it share the correction.
    package static let pause = Duration.seconds(2)
    /// The rule name of corrections. No rule file can use this name.
    package static let rule = "!badge"
    /// A later correction replaces an undelivered earlier one.
    static let collapseKey = "unread"
    /// The time after which a correction expires.
    package static let lifetime = Duration.seconds(86_400)

    /// The message that sets the badges of these recipients.
    package static func notification(
        to recipients: [Notification.Recipient], of app: AppID, now: Timestamp
    ) -> Notification {
        let id = DerivedID.uuid5(DerivedID.namespace, "badges", ids: recipients.map(\.notification))
        return Notification(
            trace: Trace(
                id: id, correlation: id.uuidString.lowercased(), causation: id.uuidString.lowercased(),
                traceparent: nil),
            app: app, rule: Self.rule, lane: .interactive, content: Content(collapseKey: Self.collapseKey),
            expiresAt: now + Self.lifetime, recipients: recipients)
    }
}

import FoundationEssentials
import PushProtocol

/// What is known of one notification by now, for the upstream whose event it was.
struct DeliveryReport: Hashable, Sendable {
    static let eventType = "heliograph.notification.reported"
    static let source = "/heliograph/rules"

    var notification: UUID
    var app: AppID
    var user: UserID
    var rule: String
    /// The id of the upstream's event.
    var event: String
    var dueAt: Timestamp
    /// Whether a provider was asked.
    var isPushSent: Bool
    /// How many devices a provider has taken it for.
    var devices: Int
    /// A provider was asked, and there is no device that it took it for.
    var isFailed: Bool

    /// The same report has the same id.
    var id: UUID {
        DerivedID.uuid5(notification, ["report", String(isPushSent), String(devices), String(isFailed)])
    }

    /// A CloudEvent, structured.
    func body(at moment: Timestamp) throws(WireError) -> [UInt8] {
        let data: JSONValue = [
            "notification_id": .string(notification.uuidString.lowercased()), "event_id": .string(event),
            "user_id": .string(user.rawValue), "rule": .string(rule), "push_sent": .bool(isPushSent),
            "devices_notified": .int(Int64(devices)), "failed": .bool(isFailed),
        ]
        let event: JSONValue = [
            "specversion": "1.0", "id": .string(id.uuidString.lowercased()), "source": .string(DeliveryReport.source),
            "type": .string(DeliveryReport.eventType), "time": .string(RFC3339.string(from: moment.date)),
            "datacontenttype": "application/json", "data": data,
        ]
        return try WireCoding.encode(event)
    }
}

import FoundationEssentials
import PushProtocol

/// The current delivery state of one notification, for the upstream that sent its event.
struct DeliveryReport: Hashable, Sendable {
    static let source = "/heliograph/rules"

    var notification: UUID
    var app: AppID
    var user: UserID
    var rule: String
    /// The id of the upstream's event.
    var event: String
    var dueAt: Timestamp
    /// Whether a push request was sent to a provider.
    var isPushSent: Bool
    /// The number of devices for which a provider accepted the push.
    var devices: Int
    /// Whether push requests were sent, and no provider accepted one.
    var isFailed: Bool

    /// Equal reports have equal ids.
    var id: UUID {
        DerivedID.uuid5(notification, ["report", String(isPushSent), String(devices), String(isFailed)])
    }

    /// The report as a CloudEvent.
    func event(at moment: Timestamp) -> ReportEvent {
        let data: JSONValue = [
            "notification_id": .string(notification.uuidString.lowercased()), "event_id": .string(event),
            "user_id": .string(user.rawValue), "rule": .string(rule), "push_sent": .bool(isPushSent),
            "devices_notified": .int(Int64(devices)), "failed": .bool(isFailed),
        ]
        return ReportEvent(kind: .delivery, id: id, source: DeliveryReport.source, time: moment, data: data)
    }
}

import FoundationEssentials
import PushProtocol
import RuleLanguage

/// A stored receipt, for the upstream: a user opened or dismissed a notification.
struct ReceiptReport: Hashable, Sendable {
    var notification: UUID
    var what: ReceiptAction
    /// When the receipt was first stored.
    var at: Timestamp
    /// The id of the upstream's event; `nil` if the decision is deleted.
    var event: String?
    var rule: String?

    /// Equal reports have equal ids.
    var id: UUID { DerivedID.uuid5(notification, ["receipt", what.rawValue]) }

    /// The report as a CloudEvent.
    func event(of user: UserID) -> ReportEvent {
        var data: [String: JSONValue] = [
            "notification_id": .string(notification.uuidString.lowercased()), "user_id": .string(user.rawValue),
            "receipt": .string(what.rawValue), "at": .string(RFC3339.string(from: at.date)),
        ]
        data["event_id"] = event.map(JSONValue.string)
        data["rule"] = rule.map(JSONValue.string)
        return ReportEvent(kind: .receipt, id: id, source: DeliveryReport.source, time: at, data: .object(data))
    }
}

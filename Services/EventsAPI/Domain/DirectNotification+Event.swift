import FoundationEssentials
import PushProtocol

extension DirectNotification {
    /// The structured CloudEvent that requests a notification.
    ///
    /// - Parameter data: the notification, which is not checked.
    /// - Throws: if the data cannot be encoded.
    static func event(
        _ data: JSONValue, id: JSONValue, source: String, at time: Date?
    ) throws(WireError) -> [UInt8] {
        var envelope: [String: JSONValue] = [
            "specversion": "1.0", "id": id, "source": .string(source), "type": .string(eventType), "data": data,
        ]
        envelope["time"] = time.map { .string(RFC3339.string(from: $0)) }
        return try WireCoding.encode(JSONValue.object(envelope))
    }
}

import FoundationEssentials
import PushProtocol

/// Reads the notification of one request: a ``DirectNotification``, and optionally the id of its event.
struct NotificationReader: Sendable {
    /// The source of the events. With the id, it identifies a notification.
    static let source = "/v1/notifications"
    private static let id = "id"

    let app: AppID
    var key: IdempotencyKey?
    /// The request's W3C `traceparent`.
    var traceparent: String?

    /// Returns the event that requests the notification. Without an id and a key, its id is random.
    func event(_ body: [UInt8], at time: Date) throws(EventRefusal) -> IncomingEvent {
        var members = try Self.members(body)
        let id = members.removeValue(forKey: Self.id) ?? .null
        let data = JSONValue.object(members)
        do { try ProviderCheck.check(try DirectNotification(data), of: app) } catch { throw Self.refusal(error) }
        let eventID = id == .null ? JSONValue.string(try newID(data)) : id
        let text: [UInt8]
        do {
            text = try DirectNotification.event(data, id: eventID, source: Self.source, at: time)
        } catch {
            throw Self.refusal(error)
        }
        return try EventReader(app: app, traceparent: traceparent, mayRequestNotifications: true).structured(text)
    }

    private func newID(_ data: JSONValue) throws(EventRefusal) -> String {
        guard let key else { return UUID().uuidString.lowercased() }
        do {
            return key.eventID(app: app, content: try WireCoding.encode(data), occurrence: 0)
        } catch {
            throw Self.refusal(error)
        }
    }

    private static func members(_ body: [UInt8]) throws(EventRefusal) -> [String: JSONValue] {
        let value: JSONValue
        do { value = try WireCoding.decode(JSONValue.self, from: body) } catch { throw refusal(error) }
        guard let members = value.object else { throw .invalid("the body is invalid: expected a JSON object") }
        return members
    }

    private static func refusal(_ error: WireError) -> EventRefusal {
        if case .tooLarge = error { return .tooLarge("the notification is too large: \(error)") }
        return .invalid("the notification is refused: \(error)")
    }
}

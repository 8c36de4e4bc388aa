import Foundation
import PushProtocol

/// A request of a Matrix homeserver
/// ([Push Gateway API](https://spec.matrix.org/v1.11/push-gateway-api/#post_matrixpushv1notify)).
struct MatrixNotify: Sendable {
    /// The maximum number of devices. A homeserver sends one to a few.
    static let maximumDevices = 100

    /// A device of the request.
    struct Device: Sendable {
        let pushkey: String
        /// The sound that the user's push rules name.
        let sound: String?
    }

    let devices: [Device]
    private let notification: JSONValue

    /// - Throws: 400 for a body without a list of devices.
    init(_ body: [UInt8]) throws(EventRefusal) {
        guard let value = try? WireCoding.decode(JSONValue.self, from: body), let notification = value["notification"],
            let list = notification["devices"]?.array
        else { throw .invalid("the body has no notification.devices") }
        guard (1...Self.maximumDevices).contains(list.count) else {
            throw .invalid("notification.devices: expected 1 to \(Self.maximumDevices) devices")
        }
        var devices: [Device] = []
        for device in list {
            guard let pushkey = device["pushkey"]?.string else {
                throw .invalid("notification.devices: each device needs a pushkey")
            }
            devices.append(Device(pushkey: pushkey, sound: device["tweaks"]?["sound"]?.string))
        }
        self.devices = devices
        self.notification = notification
    }

    /// The direct notification to a device's user as a CloudEvent.
    ///
    /// A request without an event only sets the badge. A repeated request about an event is the same CloudEvent.
    func event(to pushkey: MatrixPushkey, sound: String?) throws(EventRefusal) -> [UInt8] {
        let name = text("event_id")
        let id =
            name.map {
                DerivedID.uuid5(DerivedID.namespace, ["matrix", pushkey.app.rawValue, pushkey.user.rawValue, $0])
            } ?? UUID()
        let unread = notification["counts"]?["unread"]?.int ?? 0
        var data: JSONValue = [
            "users": [.string(pushkey.user.rawValue)], "pushOnly": true,
            "content": ["badge": .int(min(max(unread, 0), 99_999))],
        ]
        if let name { data = data.merging(about(name, sound: sound, isUrgent: text("prio") != "low")) }
        let event: JSONValue = [
            "specversion": "1.0", "id": .string(id.uuidString.lowercased()), "source": "/matrix",
            "type": .string(ReservedType.notificationRequest), "data": data,
        ]
        do { return try WireCoding.encode(event) } catch { throw EventRefusal(error) }
    }

    private func about(_ event: String, sound: String?, isUrgent: Bool) -> JSONValue {
        let sender = text("sender_display_name") ?? text("sender")
        let room = text("room_name") ?? text("room_alias")
        // Absent for an encrypted event, and with the format `event_id_only`.
        let said = notification["content"]?["body"]?.string.map { String($0.prefix(500)) }
        let body = said.map { room != nil && sender != nil ? "\(sender ?? ""): \($0)" : $0 } ?? "New message"
        var content: [String: JSONValue] = [
            "body": .string(body), "data": ["event_id": .string(event), "room_id": .optional(text("room_id"))],
            // The app's extension may decrypt the message before the phone shows it.
            "apns": ["payload": ["aps": ["mutable-content": 1]]],
        ]
        content["title"] = (room ?? sender).map { .string(String($0.prefix(100))) }
        content["thread"] = text("room_id").map(JSONValue.string)
        content["sound"] = isUrgent ? sound.map(JSONValue.string) : nil
        return ["content": .object(content), "lane": isUrgent ? "interactive" : "bulk"]
    }

    private func text(_ member: String) -> String? {
        notification[member]?.string.flatMap { $0.isEmpty ? nil : $0 }
    }
}

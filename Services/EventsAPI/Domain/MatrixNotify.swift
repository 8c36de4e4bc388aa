import Foundation
import PushProtocol

/// A request of a Matrix homeserver
/// ([Push Gateway API](https://spec.matrix.org/v1.11/push-gateway-api/#post_matrixpushv1notify)).
struct MatrixNotify: Sendable {
    /// The maximum number of devices. A homeserver sends one to a few.
    static let maximumDevices = 100
    /// The maximum sizes of a notification's texts, in bytes.
    private static let maximumTitle = 200
    private static let maximumBody = 1000
    /// The maximum of Matrix' ids, in bytes.
    private static let maximumID = 255

    struct Device: Sendable {
        let pushkey: String
        /// The sound that the user's push rules name.
        let sound: String?
    }

    let devices: [Device]
    private let notification: JSONValue

    /// - Throws: 400 for a body without a list of devices, or with an id that is too long.
    init(_ body: [UInt8]) throws(EventRefusal) {
        guard let value = try? WireCoding.decode(JSONValue.self, from: body), let notification = value["notification"],
            let list = notification["devices"]?.array
        else { throw .invalid("the body is invalid: expected a JSON object with notification.devices") }
        guard (1...Self.maximumDevices).contains(list.count) else {
            throw .invalid("notification.devices is invalid: expected 1 to \(Self.maximumDevices) devices")
        }
        var devices: [Device] = []
        for device in list {
            guard let pushkey = device["pushkey"]?.string else {
                throw .invalid("notification.devices is invalid: each device needs a pushkey")
            }
            devices.append(Device(pushkey: pushkey, sound: device["tweaks"]?["sound"]?.string))
        }
        for name in ["event_id", "room_id"] where (notification[name]?.string?.utf8.count ?? 0) > Self.maximumID {
            throw .invalid("notification.\(name) is invalid: expected at most \(Self.maximumID) bytes")
        }
        self.devices = devices
        self.notification = notification
    }

    /// Whether it is about a Matrix event. Others only set the badge.
    var isAboutEvent: Bool { text("event_id") != nil }

    /// The direct notification to a device's user as a structured CloudEvent. A repeated request about a Matrix event is
    /// the same CloudEvent.
    ///
    /// - Returns: nil for a request that has neither an event nor a number of unread messages.
    func event(to pushkey: MatrixPushkey, sound: String?) throws(EventRefusal) -> [UInt8]? {
        var content: [String: JSONValue] = [:]
        if let unread = notification["counts"]?["unread"]?.int {
            content["badge"] = .int(min(max(unread, 0), 99_999))
        }
        var data: [String: JSONValue] = ["users": [.string(pushkey.user.rawValue)], "pushOnly": true]
        var id = UUID()
        if let event = text("event_id") {
            let isUrgent = text("prio") != "low"
            id = DerivedID.uuid5(
                DerivedID.namespace, ["matrix", pushkey.app.rawValue, pushkey.user.rawValue, event])
            content.merge(words(about: event, sound: isUrgent ? sound : nil)) { $1 }
            data["lane"] = isUrgent ? "interactive" : "bulk"
        }
        guard !content.isEmpty else { return nil }
        data["content"] = .object(content)
        do {
            return try DirectNotification.event(
                .object(data), id: .string(id.uuidString.lowercased()), source: "/matrix", at: nil)
        } catch {
            throw EventRefusal(error)
        }
    }

    private func words(about event: String, sound: String?) -> [String: JSONValue] {
        let sender = text("sender_display_name") ?? text("sender")
        let room = text("room_name") ?? text("room_alias")
        // Absent for an encrypted event, and with the format `event_id_only`.
        let message = notification["content"]?["body"]?.string.flatMap { $0.isEmpty ? nil : $0 }
        let isMessage = ["m.room.message", "m.room.encrypted"].contains(text("type") ?? "m.room.message")
        var body = message ?? (isMessage ? "New message" : "New activity")
        if message != nil, room != nil, let sender { body = "\(sender): \(body)" }
        var data: [String: JSONValue] = ["event_id": .string(event)]
        data["room_id"] = text("room_id").map(JSONValue.string)
        var content: [String: JSONValue] = [
            "body": .string(Self.cut(body, to: Self.maximumBody)), "data": .object(data),
            // The app's extension may decrypt the message before the phone shows it.
            "apns": ["payload": ["aps": ["mutable-content": 1]]],
        ]
        content["title"] = (room ?? sender).map { .string(Self.cut($0, to: Self.maximumTitle)) }
        content["thread"] = text("room_id").map(JSONValue.string)
        content["sound"] = sound.flatMap { $0.isEmpty || $0.utf8.count > 64 ? nil : .string($0) }
        return content
    }

    /// Shortens a text to whole characters of at most `limit` bytes, the sign `…` included.
    private static func cut(_ text: String, to limit: Int) -> String {
        guard text.utf8.count > limit else { return text }
        let end = text.indices.last { text[..<$0].utf8.count <= limit - "…".utf8.count } ?? text.startIndex
        return text[..<end] + "…"
    }

    private func text(_ member: String) -> String? {
        notification[member]?.string.flatMap { $0.isEmpty ? nil : $0 }
    }
}

import FoundationEssentials
import Postgres
import PushProtocol
import RuleEngine
import RuleLanguage

extension HeldItem {
    /// - Parameter renderedNotifications: Rendered notifications that are decoded already, by id.
    init(_ row: PostgresRow, known renderedNotifications: [UUID: RenderedNotification]) throws {
        let id = try row.decode(UUID.self, at: 3)
        var rendered =
            try renderedNotifications[id]
            ?? RenderedNotification(row, id: id, app: row.decode(AppID.self, at: 1), from: 15)
        rendered.isToChannels = try row.decode(Bool.self, at: 27)
        self.init(
            rendered: rendered,
            recipient: Notification.Recipient(
                user: try row.decode(UserID.self, at: 2), notification: try row.decode(UUID.self, at: 0),
                badge: try row.decode(Int32?.self, at: 5).map(Int.init)),
            event: try row.decode(UUID.self, at: 4), since: Timestamp(try row.decode(Date.self, at: 6)),
            quietHolds: Int(try row.decode(Int32.self, at: 8)), step: Int(try row.decode(Int32.self, at: 9)),
            kind: HeldKind(rawValue: try row.decode(String.self, at: 10)) ?? .held,
            item: try row.decode(String?.self, at: 11), saidAt: try row.decode(Date?.self, at: 12).map(Timestamp.init),
            isKept: try row.decode(Bool.self, at: 13),
            entry: try row.decode(String?.self, at: 14).map { text throws(WireError) in
                try WireCoding.decodeStored(Digest.Entry.self, from: text)
            }, leaving: try row.decode(String?.self, at: 7).flatMap { RuleDecision.Answer(word: $0, until: nil) },
            wasDueAt: Timestamp(try row.decode(Date.self, at: 26)))
    }
}

extension RenderedNotification {
    /// Reads rule, lane, content, mutes, expires_at, delivery, correlation, traceparent, preview, devices and scope, starting at
    /// `column`.
    init(_ row: PostgresRow, id: UUID, app: AppID, from column: Int) throws {
        func content(_ text: String) throws(WireError) -> Content {
            try WireCoding.decodeStored(Content.self, from: text)
        }
        self.init(
            id: id, app: app, rule: try row.decode(String.self, at: column),
            lane: try row.decode(Lane.self, at: column + 1),
            content: try content(try row.decode(String.self, at: column + 2)),
            preview: try row.decode(String?.self, at: column + 8).map { text throws(WireError) in try content(text) },
            mutes: try row.decode([String].self, at: column + 3),
            expiresAt: try row.decode(Date?.self, at: column + 4).map(Timestamp.init),
            delivery: try row.decode(String?.self, at: column + 5).flatMap(DeliveryPolicy.init(rawValue:)),
            scope: try row.decode(String?.self, at: column + 10),
            devices: try row.decode(String?.self, at: column + 9).map { text throws(WireError) in
                try WireCoding.decodeStored(DeviceSelection.self, from: text)
            }, correlation: try row.decode(String.self, at: column + 6),
            traceparent: try row.decode(String?.self, at: column + 7))
    }
}

import FoundationEssentials

extension Notification {
    /// Decodes a notification: to recipients in canonical form without `JSONDecoder`, which reads all others.
    package static func decode(wireBody body: [UInt8]) throws(WireError) -> Self {
        if body.count <= WireCoding.maximumBodySize, let notification = canonical(body) { return notification }
        return try decodeWithCodable(body)
    }

    /// Returns `nil` for audiences, broadcasts, scopes and selected devices, and for other forms of JSON.
    static func canonical(_ body: [UInt8]) -> Self? {
        JSONReader.read(body) { (reader) throws(JSONReader.Unreadable) in try Notification(&reader) }
    }

    private init(_ reader: inout JSONReader) throws(JSONReader.Unreadable) {
        var members = try SortedObjectReader(&reader)
        try members.require(#""app":"#, &reader)
        let app = try reader.validated(AppID.self)
        try members.requireAbsent(#""audience":"#, &reader)
        try members.requireAbsent(#""broadcast":"#, &reader)
        try members.require(#""content":"#, &reader)
        let content = try Content(&reader)
        let delivery: DeliveryPolicy? =
            try members.find(#""delivery":"#, &reader) ? try reader.optionalEnumValue(DeliveryPolicy.self) : nil
        try members.requireAbsent(#""devices":"#, &reader)
        let expiresAt = try members.find(#""expiresAt":"#, &reader) ? try reader.optionalTimestamp() : nil
        try members.require(#""lane":"#, &reader)
        let lane = try reader.enumValue(Lane.self)
        try members.require(#""recipients":"#, &reader)
        let recipients = try reader.elements { (reader) throws(JSONReader.Unreadable) in try Recipient(&reader) }
        try members.require(#""rule":"#, &reader)
        let rule = try reader.string()
        try members.requireAbsent(#""scope":"#, &reader)
        try members.require(#""trace":"#, &reader)
        let trace = try Trace(&reader)
        try members.end(&reader, ofType: #""heliograph.notification""#, upToVersion: Self.messageVersion)
        self.init(
            trace: trace, app: app, rule: rule, lane: lane, content: content,
            expiresAt: expiresAt, delivery: delivery, recipients: recipients)
    }
}

extension Notification.Recipient {
    fileprivate init(_ reader: inout JSONReader) throws(JSONReader.Unreadable) {
        var members = try SortedObjectReader(&reader)
        let badge = try members.find(#""badge":"#, &reader) ? try reader.optionalInteger() : nil
        try members.require(#""notification":"#, &reader)
        let notification = try reader.uuid()
        try members.require(#""user":"#, &reader)
        let user = try reader.validated(UserID.self)
        try members.end(&reader)
        self.init(user: user, notification: notification, badge: badge.map(Int.init))
    }
}

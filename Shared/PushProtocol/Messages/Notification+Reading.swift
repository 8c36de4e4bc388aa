import FoundationEssentials

extension Notification {
    /// Decodes a notification to recipients without `JSONDecoder`; see ``SortedObjectReader``. Returns `nil` for
    /// audiences, broadcasts and scopes.
    package static func fastDecoded(_ body: [UInt8]) -> Self? {
        CanonicalJSONReader.read(body) { (scan) throws(JSONReader.NotCanonical) in try Notification(&scan) }
    }

    private init(_ scan: inout CanonicalJSONReader) throws(JSONReader.NotCanonical) {
        var members = try SortedObjectReader(&scan)
        try members.require(#""app":"#, &scan)
        guard let app = AppID(rawValue: try scan.text()) else { throw JSONReader.NotCanonical() }
        try members.requireAbsent(#""audience":"#, &scan)
        try members.requireAbsent(#""broadcast":"#, &scan)
        try members.require(#""content":"#, &scan)
        let content = try scan.withJSONReader { (reader) throws(JSONReader.NotCanonical) in try Content(&reader) }
        let delivery: DeliveryPolicy? =
            try members.find(#""delivery":"#, &scan) ? try scan.optionalEnumValue(DeliveryPolicy.self) : nil
        let expiresAt = try members.find(#""expiresAt":"#, &scan) ? try scan.optionalInteger() : nil
        try members.require(#""lane":"#, &scan)
        let lane = try scan.enumValue(Lane.self)
        try members.require(#""recipients":"#, &scan)
        let recipients = try scan.elements { (scan) throws(JSONReader.NotCanonical) in try Recipient(&scan) }
        try members.require(#""rule":"#, &scan)
        let rule = try scan.text()
        try members.requireAbsent(#""scope":"#, &scan)
        try members.require(#""trace":"#, &scan)
        let trace = try Trace(&scan)
        try members.end(&scan, ofType: #""heliograph.notification""#, upToVersion: Self.messageVersion)
        self.init(
            trace: trace, app: app, rule: rule, lane: lane, content: content,
            expiresAt: expiresAt.map(Timestamp.init(milliseconds:)), delivery: delivery, recipients: recipients)
    }
}

extension Notification.Recipient {
    fileprivate init(_ scan: inout CanonicalJSONReader) throws(JSONReader.NotCanonical) {
        var members = try SortedObjectReader(&scan)
        let badge = try members.find(#""badge":"#, &scan) ? try scan.optionalInteger() : nil
        try members.require(#""notification":"#, &scan)
        let notification = try scan.uuid()
        try members.require(#""user":"#, &scan)
        guard let user = UserID(rawValue: try scan.text()) else { throw JSONReader.NotCanonical() }
        try members.end(&scan)
        self.init(user: user, notification: notification, badge: badge.map(Int.init))
    }
}

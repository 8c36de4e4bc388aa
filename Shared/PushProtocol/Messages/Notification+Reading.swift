import FoundationEssentials

extension Notification {
    /// Reads a notification to recipients without the general decoder; see ``OrderedMembers``. Audiences,
    /// broadcasts and scopes are left to that one.
    package static func read(_ body: [UInt8]) -> Self? {
        CanonicalScan.read(body) { (scan) throws(JSONReader.Unusual) in try Notification(&scan) }
    }

    private init(_ scan: inout CanonicalScan) throws(JSONReader.Unusual) {
        var members = try OrderedMembers(&scan)
        try members.require(#""app":"#, &scan)
        guard let app = AppID(rawValue: try scan.text()) else { throw JSONReader.Unusual() }
        try members.refuse(#""audience":"#, &scan)
        try members.refuse(#""broadcast":"#, &scan)
        try members.require(#""content":"#, &scan)
        let content = try scan.reading { (reader) throws(JSONReader.Unusual) in try Content(&reader) }
        let delivery: DeliveryPolicy? =
            try members.find(#""delivery":"#, &scan) ? try scan.optionalWord(DeliveryPolicy.self) : nil
        let expiresAt = try members.find(#""expiresAt":"#, &scan) ? try scan.optionalInteger() : nil
        try members.require(#""lane":"#, &scan)
        let lane = try scan.word(Lane.self)
        try members.require(#""recipients":"#, &scan)
        let recipients = try scan.elements { (scan) throws(JSONReader.Unusual) in try Recipient(&scan) }
        try members.require(#""rule":"#, &scan)
        let rule = try scan.text()
        try members.refuse(#""scope":"#, &scan)
        try members.require(#""trace":"#, &scan)
        let trace = try Trace(&scan)
        try members.end(&scan, ofType: #""heliograph.notification""#, upToVersion: Self.messageVersion)
        self.init(
            trace: trace, app: app, rule: rule, lane: lane, content: content,
            expiresAt: expiresAt.map(Timestamp.init(milliseconds:)), delivery: delivery, recipients: recipients)
    }
}

extension Notification.Recipient {
    fileprivate init(_ scan: inout CanonicalScan) throws(JSONReader.Unusual) {
        var members = try OrderedMembers(&scan)
        let badge = try members.find(#""badge":"#, &scan) ? try scan.optionalInteger() : nil
        try members.require(#""notification":"#, &scan)
        let notification = try scan.uuid()
        try members.require(#""user":"#, &scan)
        guard let user = UserID(rawValue: try scan.text()) else { throw JSONReader.Unusual() }
        try members.end(&scan)
        self.init(user: user, notification: notification, badge: badge.map(Int.init))
    }
}

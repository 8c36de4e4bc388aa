import FoundationEssentials

extension Notification {
    /// Reads a notification to recipients without the general decoder; see ``JSONReader``. Audiences,
    /// broadcasts and scopes are left to that one.
    package static func read(_ body: [UInt8]) -> Self? {
        body.withUnsafeBufferPointer { bytes in
            var reader = JSONReader(bytes)
            do throws(JSONReader.Unusual) {
                let notification = try Notification(&reader)
                try reader.end()
                return notification
            } catch {
                return nil
            }
        }
    }

    private init(_ reader: inout JSONReader) throws(JSONReader.Unusual) {
        var type: String?, version: Int64?, trace: Trace?, app: AppID?, rule: String?, lane: Lane?, content: Content?
        var expiresAt: Timestamp?, delivery: DeliveryPolicy?, recipients: [Recipient]?
        var seen = OnceEach()
        try reader.object { (reader, key) throws(JSONReader.Unusual) in
            switch key {
            case "type": try seen.take(0); type = try reader.string()
            case "version": try seen.take(1); version = try reader.integer()
            case "trace": try seen.take(2); trace = try Trace(&reader)
            case "app": try seen.take(3); app = AppID(rawValue: try reader.string())
            case "rule": try seen.take(4); rule = try reader.string()
            case "lane": try seen.take(5); lane = Lane(rawValue: try reader.string())
            case "content": try seen.take(6); content = try Content(&reader)
            case "expiresAt":
                try seen.take(7)
                expiresAt = try reader.optional { (reader) throws(JSONReader.Unusual) in
                    Timestamp(milliseconds: try reader.integer())
                }
            case "delivery":
                try seen.take(8)
                let word = try reader.optional { (reader) throws(JSONReader.Unusual) in try reader.string() }
                delivery = try word.map { (word) throws(JSONReader.Unusual) in
                    guard let policy = DeliveryPolicy(rawValue: word) else { throw JSONReader.Unusual() }
                    return policy
                }
            case "recipients":
                try seen.take(9)
                var read: [Recipient] = []
                try reader.array { (reader) throws(JSONReader.Unusual) in read.append(try Recipient(&reader)) }
                recipients = read
            case "audience", "broadcast", "scope": throw JSONReader.Unusual()
            default: try reader.skip(key)
            }
        }
        guard type == Self.messageType, let version, (1...Int64(Self.messageVersion)).contains(version), let trace,
            let app, let rule, let lane, let content, let recipients
        else { throw JSONReader.Unusual() }
        self.init(
            trace: trace, app: app, rule: rule, lane: lane, content: content, expiresAt: expiresAt, delivery: delivery,
            recipients: recipients)
    }
}

extension Notification.Recipient {
    fileprivate init(_ reader: inout JSONReader) throws(JSONReader.Unusual) {
        var user: UserID?, notification: UUID?, badge: Int?
        var seen = OnceEach()
        try reader.object { (reader, key) throws(JSONReader.Unusual) in
            switch key {
            case "user": try seen.take(0); user = UserID(rawValue: try reader.string())
            case "notification": try seen.take(1); notification = try reader.uuid()
            case "badge":
                try seen.take(2)
                badge = try reader.optional { (reader) throws(JSONReader.Unusual) in Int(try reader.integer()) }
            default: try reader.skip(key)
            }
        }
        guard let user, let notification else { throw JSONReader.Unusual() }
        self.init(user: user, notification: notification, badge: badge)
    }
}

import FoundationEssentials

extension Push: CanonicalMessage {
    package init(_ reader: inout JSONReader, of body: [UInt8]) throws(JSONReader.Unreadable) {
        var members = try SortedObjectReader(&reader)
        try members.require(#""app":"#, &reader)
        let app = try reader.validated(AppID.self)
        var campaign: UUID?
        if try members.find(#""campaign":"#, &reader), try !reader.consumeNull() { campaign = try reader.uuid() }
        try members.require(#""content":"#, &reader)
        let content = try PushContent(&reader, of: body)
        let delivery: DeliveryPolicy? =
            try members.find(#""delivery":"#, &reader) ? try reader.optionalEnumValue() : nil
        try members.require(#""environment":"#, &reader)
        let environment = try reader.enumValue(ProviderEnvironment.self)
        let expiresAt = try members.find(#""expiresAt":"#, &reader) ? try reader.optionalTimestamp() : nil
        try members.require(#""lane":"#, &reader)
        let lane = try reader.enumValue(Lane.self)
        try members.require(#""provider":"#, &reader)
        let provider = try reader.enumValue(Provider.self)
        try members.require(#""targets":"#, &reader)
        let targets = reader.isNext(UInt8(ascii: "[")) ? try Target.list(&reader) : try Target.table(&reader)
        try members.require(#""trace":"#, &reader)
        let trace = try Trace(&reader)
        try members.end(&reader, ofType: #""heliograph.push""#, upToVersion: Self.messageVersion)
        self.init(
            trace: trace, app: app, campaign: campaign, provider: provider, environment: environment, lane: lane,
            content: content,
            expiresAt: expiresAt, delivery: delivery, targets: targets)
    }
}

extension Push.Target {
    /// Reads the columns of a table into targets.
    fileprivate static func table(_ reader: inout JSONReader) throws(JSONReader.Unreadable) -> [Push.Target] {
        var members = try SortedObjectReader(&reader)
        // These columns precede the one that gives the number of targets.
        let addresses = try members.find(#""addresses":"#, &reader) ? try reader.passing() : nil
        let badges = try members.find(#""badges":"#, &reader) ? try reader.passing() : nil
        try members.require(#""devices":"#, &reader)
        var targets = try reader.ids(Self.init(of:))
        let next = reader.position
        if let addresses {
            reader.position = addresses
            try reader.optionalColumn(of: &targets) { (reader) throws(JSONReader.Unreadable) in
                try reader.optionalEnumValue(Push.Address.self)
            } set: {
                $0.address = $1
            }
        }
        if let badges {
            reader.position = badges
            try reader.optionalColumn(of: &targets) { (reader) throws(JSONReader.Unreadable) in
                try reader.optionalInteger()
            } set: {
                $0.badge = $1.map(Int.init)
            }
        }
        reader.position = next
        if try members.find(#""fallbacks":"#, &reader) {
            try reader.optionalColumn(of: &targets) { (reader) throws(JSONReader.Unreadable) in
                try reader.optionalString().map(DeviceToken.init(secret:))
            } set: {
                $0.fallback = $1
            }
        }
        try members.require(#""notifications":"#, &reader)
        try reader.column(of: &targets) { (reader) throws(JSONReader.Unreadable) in
            try reader.uuid()
        } set: {
            $0.notification = $1
        }
        if try members.find(#""owners":"#, &reader) {
            try reader.optionalColumn(of: &targets) { (reader) throws(JSONReader.Unreadable) in
                try reader.optionalInteger()
            } set: {
                $0.owner = $1.map(UserHash.init(rawValue:))
            }
        }
        try members.require(#""registeredAt":"#, &reader)
        try reader.column(of: &targets) { (reader) throws(JSONReader.Unreadable) in
            try reader.integer()
        } set: {
            $0.registeredAt = Timestamp(milliseconds: $1)
        }
        try members.require(#""tokens":"#, &reader)
        try reader.list(of: &targets) { (reader) throws(JSONReader.Unreadable) in
            DeviceToken(secret: try reader.string())
        } set: {
            $0.token = $1
        }
        try members.end(&reader)
        return targets
    }

    /// A target whose members the columns fill in.
    private init(of device: UUID) {
        self.init(
            device: device, token: DeviceToken(secret: ""), notification: device,
            registeredAt: Timestamp(milliseconds: 0))
    }

    /// Reads the list of version 1.
    fileprivate static func list(_ reader: inout JSONReader) throws(JSONReader.Unreadable) -> [Push.Target] {
        try reader.elements { (reader) throws(JSONReader.Unreadable) in
            var members = try SortedObjectReader(&reader)
            let address: Push.Address? =
                try members.find(#""address":"#, &reader) ? try reader.optionalEnumValue() : nil
            let badge = try members.find(#""badge":"#, &reader) ? try reader.optionalInteger() : nil
            try members.require(#""device":"#, &reader)
            let device = try reader.uuid()
            try members.require(#""notification":"#, &reader)
            let notification = try reader.uuid()
            try members.require(#""registeredAt":"#, &reader)
            let registeredAt = try reader.timestamp()
            try members.require(#""token":"#, &reader)
            let token = DeviceToken(secret: try reader.string())
            try members.end(&reader)
            return Push.Target(
                device: device, token: token, address: address, notification: notification, badge: badge.map(Int.init),
                registeredAt: registeredAt)
        }
    }
}

extension JSONReader {
    /// Skips a value and returns its position.
    fileprivate mutating func passing() throws(Unreadable) -> Int {
        let start = position
        _ = try canonicalValue()
        return start
    }

    /// Reads a column that may be `null`.
    @inline(__always)
    fileprivate mutating func optionalColumn<Value>(
        of targets: inout [Push.Target], read: (inout JSONReader) throws(Unreadable) -> Value,
        set: (inout Push.Target, Value) -> Void
    ) throws(Unreadable) {
        if try !consumeNull() { try column(of: &targets, read: read, set: set) }
    }
}

extension PushContent {
    /// Keeps the content encoded where possible, and decodes it otherwise.
    fileprivate init(_ reader: inout JSONReader, of body: [UInt8]) throws(JSONReader.Unreadable) {
        var ahead = reader
        do throws(JSONReader.Unreadable) {
            self = .encoded(try EncodedContent(&ahead, in: body))
            reader = ahead
        } catch {
            self.init(try Content(&reader))
        }
    }
}

import FoundationEssentials

extension Push {
    /// As every message is read, compiled for this one: it is what each push costs a sender first.
    package static func decode(wireBody body: [UInt8]) throws(WireError) -> Push {
        if body.count <= WireCoding.maximumBodySize, let push = read(body) { return push }
        return try decodeGenerally(wireBody: body)
    }

    /// Reads a push without the general decoder, as ``written()`` writes it; see ``OrderedMembers``.
    package static func read(_ body: [UInt8]) -> Self? {
        CanonicalScan.read(body) { (scan) throws(JSONReader.Unusual) in try Push(&scan, of: body) }
    }

    private init(_ scan: inout CanonicalScan, of body: [UInt8]) throws(JSONReader.Unusual) {
        var members = try OrderedMembers(&scan)
        try members.require(#""app":"#, &scan)
        guard let app = AppID(rawValue: try scan.text()) else { throw JSONReader.Unusual() }
        try members.require(#""content":"#, &scan)
        let content = try PushContent(&scan, of: body)
        let delivery: DeliveryPolicy? =
            try members.find(#""delivery":"#, &scan) ? try scan.optionalWord(DeliveryPolicy.self) : nil
        try members.require(#""environment":"#, &scan)
        let environment = try scan.word(ProviderEnvironment.self)
        let expiresAt = try members.find(#""expiresAt":"#, &scan) ? try scan.optionalInteger() : nil
        try members.require(#""lane":"#, &scan)
        let lane = try scan.word(Lane.self)
        try members.require(#""provider":"#, &scan)
        let provider = try scan.word(Provider.self)
        try members.require(#""targets":"#, &scan)
        let targets = try scan.elements { (scan) throws(JSONReader.Unusual) in try Target(&scan) }
        try members.require(#""trace":"#, &scan)
        let trace = try Trace(&scan)
        try members.end(&scan, ofType: #""heliograph.push""#, upToVersion: Self.messageVersion)
        self.init(
            trace: trace, app: app, provider: provider, environment: environment, lane: lane, content: content,
            expiresAt: expiresAt.map(Timestamp.init(milliseconds:)), delivery: delivery, targets: targets)
    }
}

extension Push.Target {
    fileprivate init(_ scan: inout CanonicalScan) throws(JSONReader.Unusual) {
        var members = try OrderedMembers(&scan)
        let address: Push.Address? =
            try members.find(#""address":"#, &scan) ? try scan.optionalWord(Push.Address.self) : nil
        let badge = try members.find(#""badge":"#, &scan) ? try scan.optionalInteger() : nil
        try members.require(#""device":"#, &scan)
        let device = try scan.uuid()
        try members.require(#""notification":"#, &scan)
        let notification = try scan.uuid()
        try members.require(#""registeredAt":"#, &scan)
        let registeredAt = Timestamp(milliseconds: try scan.integer())
        try members.require(#""token":"#, &scan)
        let token = DeviceToken(secret: try scan.text())
        try members.end(&scan)
        self.init(
            device: device, token: token, address: address, notification: notification, badge: badge.map(Int.init),
            registeredAt: registeredAt)
    }
}

extension PushContent {
    /// Leaves a content as it is where it can be; reads it where something about it is unusual.
    fileprivate init(_ scan: inout CanonicalScan, of body: [UInt8]) throws(JSONReader.Unusual) {
        var ahead = scan
        do throws(JSONReader.Unusual) {
            self = .text(try ContentText(&ahead, in: body))
            scan = ahead
        } catch {
            self.init(
                try scan.reading { (reader) throws(JSONReader.Unusual) in try Content(&reader) })
        }
    }
}

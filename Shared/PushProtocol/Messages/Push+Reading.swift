import FoundationEssentials

extension Push {
    /// As every message is read, compiled for this one: it is what each push costs a sender first.
    package static func decode(wireBody body: [UInt8]) throws(WireError) -> Push {
        if body.count <= WireCoding.maximumBodySize, let push = read(body) { return push }
        return try decodeGenerally(wireBody: body)
    }

    /// Reads a push without the general decoder, as ``written()`` writes it; see ``OrderedMembers``. What version 1 wrote is
    /// left to that decoder.
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
        let targets = try Target.table(&scan)
        try members.require(#""trace":"#, &scan)
        let trace = try Trace(&scan)
        try members.end(&scan, ofType: #""heliograph.push""#, upToVersion: Self.messageVersion)
        self.init(
            trace: trace, app: app, provider: provider, environment: environment, lane: lane, content: content,
            expiresAt: expiresAt.map(Timestamp.init(milliseconds:)), delivery: delivery, targets: targets)
    }
}

extension Push.Target {
    /// Reads the columns of ``PushTargets`` straight into the targets that they are parts of.
    fileprivate static func table(_ scan: inout CanonicalScan) throws(JSONReader.Unusual) -> [Push.Target] {
        var members = try OrderedMembers(&scan)
        // They come before it is known how many targets there are.
        let addresses = try members.find(#""addresses":"#, &scan) ? try scan.passing() : nil
        let badges = try members.find(#""badges":"#, &scan) ? try scan.passing() : nil
        try members.require(#""devices":"#, &scan)
        var targets = try scan.ids(Self.init(of:))
        if var addresses, try !addresses.takesNull() {
            try addresses.column(of: &targets) { (scan) throws(JSONReader.Unusual) in
                try scan.optionalWord(Push.Address.self)
            } set: {
                $0.address = $1
            }
        }
        if var badges, try !badges.takesNull() {
            try badges.column(of: &targets) { (scan) throws(JSONReader.Unusual) in
                try scan.optionalInteger()
            } set: {
                $0.badge = $1.map(Int.init)
            }
        }
        if try members.find(#""fallbacks":"#, &scan), try !scan.takesNull() {
            try scan.column(of: &targets) { (scan) throws(JSONReader.Unusual) in
                try scan.takesNull() ? nil : DeviceToken(secret: try scan.text())
            } set: {
                $0.fallback = $1
            }
        }
        try members.require(#""notifications":"#, &scan)
        try scan.column(of: &targets) { (scan) throws(JSONReader.Unusual) in
            try scan.uuid()
        } set: {
            $0.notification = $1
        }
        if try members.find(#""owners":"#, &scan), try !scan.takesNull() {
            try scan.column(of: &targets) { (scan) throws(JSONReader.Unusual) in
                try scan.optionalInteger()
            } set: {
                $0.owner = $1.map(OwnerKey.init(rawValue:))
            }
        }
        try members.require(#""registeredAt":"#, &scan)
        try scan.column(of: &targets) { (scan) throws(JSONReader.Unusual) in
            try scan.integer()
        } set: {
            $0.registeredAt = Timestamp(milliseconds: $1)
        }
        try members.require(#""tokens":"#, &scan)
        let tokens = try targets.withUnsafeMutableBufferPointer { (targets) throws(JSONReader.Unusual) in
            try scan.rows { (scan, row) throws(JSONReader.Unusual) in
                guard row < targets.count else { throw JSONReader.Unusual() }
                targets[row].token = DeviceToken(secret: try scan.text())
            }
        }
        guard tokens == targets.count else { throw JSONReader.Unusual() }
        try members.end(&scan)
        return targets
    }

    /// What is filled in as the columns are read.
    private init(of device: UUID) {
        self.init(
            device: device, token: DeviceToken(secret: ""), notification: device,
            registeredAt: Timestamp(milliseconds: 0))
    }
}

extension CanonicalScan {
    /// Passes over a value, and returns what reads it later.
    fileprivate mutating func passing() throws(JSONReader.Unusual) -> CanonicalScan {
        let later = self
        _ = try value()
        return later
    }

    /// Reads a ``Column`` of a part of these targets.
    @inline(__always)
    fileprivate mutating func column<Value>(
        of targets: inout [Push.Target],
        read: (inout CanonicalScan) throws(JSONReader.Unusual) -> Value,
        set: (inout Push.Target, Value) -> Void
    ) throws(JSONReader.Unusual) {
        // A buffer: an array would be looked at for other owners with each row.
        try targets.withUnsafeMutableBufferPointer { (targets) throws(JSONReader.Unusual) in
            var first: Value?
            let rows = try rows { (scan, row) throws(JSONReader.Unusual) in
                guard row < targets.count else { throw JSONReader.Unusual() }
                let value = try read(&scan)
                if row == 0 { first = value }
                set(&targets[row], value)
            }
            if rows == targets.count { return }
            guard rows == 1, let first else { throw JSONReader.Unusual() }
            for row in targets.indices.dropFirst() { set(&targets[row], first) }
        }
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

import FoundationEssentials

extension Push {
    /// Decodes a push. A specialization of ``WireMessage/decode(wireBody:)``, because decoding dominates a sender's
    /// cost.
    package static func decode(wireBody body: [UInt8]) throws(WireError) -> Push {
        if body.count <= WireCoding.maximumBodySize, let push = fastDecoded(body) { return push }
        return try decodeWithCodable(wireBody: body)
    }

    /// Decodes a push without `JSONDecoder`, in the form that ``fastEncoded()`` writes; see ``SortedObjectReader``.
    /// Returns `nil` for version 1.
    package static func fastDecoded(_ body: [UInt8]) -> Self? {
        CanonicalJSONReader.read(body) { (scan) throws(JSONReader.NotCanonical) in try Push(&scan, of: body) }
    }

    private init(_ scan: inout CanonicalJSONReader, of body: [UInt8]) throws(JSONReader.NotCanonical) {
        var members = try SortedObjectReader(&scan)
        try members.require(#""app":"#, &scan)
        guard let app = AppID(rawValue: try scan.text()) else { throw JSONReader.NotCanonical() }
        try members.require(#""content":"#, &scan)
        let content = try PushContent(&scan, of: body)
        let delivery: DeliveryPolicy? =
            try members.find(#""delivery":"#, &scan) ? try scan.optionalEnumValue(DeliveryPolicy.self) : nil
        try members.require(#""environment":"#, &scan)
        let environment = try scan.enumValue(ProviderEnvironment.self)
        let expiresAt = try members.find(#""expiresAt":"#, &scan) ? try scan.optionalInteger() : nil
        try members.require(#""lane":"#, &scan)
        let lane = try scan.enumValue(Lane.self)
        try members.require(#""provider":"#, &scan)
        let provider = try scan.enumValue(Provider.self)
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
    /// Reads the columns of ``PushTargets`` into targets.
    fileprivate static func table(_ scan: inout CanonicalJSONReader) throws(JSONReader.NotCanonical) -> [Push.Target] {
        var members = try SortedObjectReader(&scan)
        // These columns precede the one that gives the number of targets.
        let addresses = try members.find(#""addresses":"#, &scan) ? try scan.passing() : nil
        let badges = try members.find(#""badges":"#, &scan) ? try scan.passing() : nil
        try members.require(#""devices":"#, &scan)
        var targets = try scan.ids(Self.init(of:))
        if var addresses, try !addresses.consumeNull() {
            try addresses.column(of: &targets) { (scan) throws(JSONReader.NotCanonical) in
                try scan.optionalEnumValue(Push.Address.self)
            } set: {
                $0.address = $1
            }
        }
        if var badges, try !badges.consumeNull() {
            try badges.column(of: &targets) { (scan) throws(JSONReader.NotCanonical) in
                try scan.optionalInteger()
            } set: {
                $0.badge = $1.map(Int.init)
            }
        }
        if try members.find(#""fallbacks":"#, &scan), try !scan.consumeNull() {
            try scan.column(of: &targets) { (scan) throws(JSONReader.NotCanonical) in
                try scan.consumeNull() ? nil : DeviceToken(secret: try scan.text())
            } set: {
                $0.fallback = $1
            }
        }
        try members.require(#""notifications":"#, &scan)
        try scan.column(of: &targets) { (scan) throws(JSONReader.NotCanonical) in
            try scan.uuid()
        } set: {
            $0.notification = $1
        }
        if try members.find(#""owners":"#, &scan), try !scan.consumeNull() {
            try scan.column(of: &targets) { (scan) throws(JSONReader.NotCanonical) in
                try scan.optionalInteger()
            } set: {
                $0.owner = $1.map(UserHash.init(rawValue:))
            }
        }
        try members.require(#""registeredAt":"#, &scan)
        try scan.column(of: &targets) { (scan) throws(JSONReader.NotCanonical) in
            try scan.integer()
        } set: {
            $0.registeredAt = Timestamp(milliseconds: $1)
        }
        try members.require(#""tokens":"#, &scan)
        let tokens = try targets.withUnsafeMutableBufferPointer { (targets) throws(JSONReader.NotCanonical) in
            try scan.rows { (scan, row) throws(JSONReader.NotCanonical) in
                guard row < targets.count else { throw JSONReader.NotCanonical() }
                targets[row].token = DeviceToken(secret: try scan.text())
            }
        }
        guard tokens == targets.count else { throw JSONReader.NotCanonical() }
        try members.end(&scan)
        return targets
    }

    /// A target whose members the columns fill in.
    private init(of device: UUID) {
        self.init(
            device: device, token: DeviceToken(secret: ""), notification: device,
            registeredAt: Timestamp(milliseconds: 0))
    }
}

extension CanonicalJSONReader {
    /// Skips a value and returns a reader at its start.
    fileprivate mutating func passing() throws(JSONReader.NotCanonical) -> CanonicalJSONReader {
        let later = self
        _ = try value()
        return later
    }

    /// Reads a ``Column`` into one member of the targets.
    @inline(__always)
    fileprivate mutating func column<Value>(
        of targets: inout [Push.Target],
        read: (inout CanonicalJSONReader) throws(JSONReader.NotCanonical) -> Value,
        set: (inout Push.Target, Value) -> Void
    ) throws(JSONReader.NotCanonical) {
        // A buffer avoids the array's uniqueness check in each row.
        try targets.withUnsafeMutableBufferPointer { (targets) throws(JSONReader.NotCanonical) in
            var first: Value?
            let rows = try rows { (scan, row) throws(JSONReader.NotCanonical) in
                guard row < targets.count else { throw JSONReader.NotCanonical() }
                let value = try read(&scan)
                if row == 0 { first = value }
                set(&targets[row], value)
            }
            if rows == targets.count { return }
            guard rows == 1, let first else { throw JSONReader.NotCanonical() }
            for row in targets.indices.dropFirst() { set(&targets[row], first) }
        }
    }
}

extension PushContent {
    /// Keeps the content encoded where possible, and decodes it otherwise.
    fileprivate init(_ scan: inout CanonicalJSONReader, of body: [UInt8]) throws(JSONReader.NotCanonical) {
        var ahead = scan
        do throws(JSONReader.NotCanonical) {
            self = .encoded(try EncodedContent(&ahead, in: body))
            scan = ahead
        } catch {
            self.init(
                try scan.withJSONReader { (reader) throws(JSONReader.NotCanonical) in try Content(&reader) })
        }
    }
}

import FoundationEssentials

/// The wire form of a push's targets: a table with one row a device.
struct PushTargets {
    let targets: [Push.Target]

    private enum CodingKeys: String, CodingKey {
        case addresses, badges, devices, fallbacks, notifications, owners, registeredAt, tokens
    }
}

extension PushTargets: Encodable {
    func encode(to encoder: any Encoder) throws {
        var table = encoder.container(keyedBy: CodingKeys.self)
        if targets.contains(where: { $0.address != nil }) {
            try table.encode(Column(targets.map(\.address)), forKey: .addresses)
        }
        if targets.contains(where: { $0.badge != nil }) {
            try table.encode(Column(targets.map(\.badge)), forKey: .badges)
        }
        try table.encode(targets.map(\.device), forKey: .devices)
        if targets.contains(where: { $0.fallback != nil }) {
            try table.encode(Column(targets.map(\.fallback)), forKey: .fallbacks)
        }
        try table.encode(Column(targets.map(\.notification)), forKey: .notifications)
        if targets.contains(where: { $0.owner != nil }) {
            try table.encode(Column(targets.map(\.owner)), forKey: .owners)
        }
        try table.encode(Column(targets.map(\.registeredAt)), forKey: .registeredAt)
        try table.encode(targets.map(\.token), forKey: .tokens)
    }
}

extension PushTargets: Decodable {
    /// Decodes the table, and the list of version 1.
    init(from decoder: any Decoder) throws {
        if let list = try? decoder.unkeyedContainer() {
            targets = try Self.listed(list)
            return
        }
        let table = try decoder.container(keyedBy: CodingKeys.self)
        let devices = try table.decode([UUID].self, forKey: .devices)
        let tokens = try table.decode([DeviceToken].self, forKey: .tokens)
        guard tokens.count == devices.count else {
            throw DecodingError.dataCorruptedError(
                forKey: .tokens, in: table, debugDescription: "expected \(devices.count) values, one a device")
        }
        func column<Value>(_: Value.Type, _ key: CodingKeys) throws -> Column<Value>? {
            try table.decodeIfPresent(Column<Value>.self, forKey: key, rows: devices.count)
        }
        let addresses = try column(Push.Address?.self, .addresses)
        let badges = try column(Int?.self, .badges)
        let fallbacks = try column(DeviceToken?.self, .fallbacks)
        let owners = try column(UserHash?.self, .owners)
        let notifications = try table.decode(Column<UUID>.self, forKey: .notifications, rows: devices.count)
        let registeredAt = try table.decode(Column<Timestamp>.self, forKey: .registeredAt, rows: devices.count)
        targets = devices.indices.map { row in
            Push.Target(
                device: devices[row], token: tokens[row], address: addresses?[row] ?? nil,
                notification: notifications[row], badge: badges?[row] ?? nil, registeredAt: registeredAt[row],
                fallback: fallbacks?[row] ?? nil, owner: owners?[row] ?? nil)
        }
    }

    private static func listed(_ list: any UnkeyedDecodingContainer) throws -> [Push.Target] {
        var list = list
        var targets: [Push.Target] = []
        while !list.isAtEnd { targets.append(try list.decode(Push.Target.self)) }
        return targets
    }
}

package import FoundationEssentials

/// The audience of a ``Notification`` without named recipients. It becomes a campaign, which the registry sends in
/// the bulk lane.
package struct Audience: Hashable, Sendable {
    /// The campaign's id, the same in all of its messages. Each member's notification id derives from it
    /// (``DerivedID/notification(campaign:recipient:)``). A campaign starts once, even if its message is redelivered.
    package var campaign: UUID
    package var members: Members
    /// The selected devices; absent: all. Users without a selected device are not in the audience.
    package var devices: DeviceFilter?
    /// The maximum pushes a second; absent: unlimited.
    package var rate: Int?
    /// The share of the members that the campaign leaves out, in percent; absent: none. A member's notification id
    /// decides (``isHeldOut(_:)``).
    package var holdOut: Int?
    /// Whether the registry sends the members to rules (``SegmentPage``) and no pushes. Then the content's data has the
    /// event, as the member `event`.
    package var resolves = false

    package init(
        campaign: UUID, members: Members, devices: DeviceFilter? = nil, rate: Int? = nil, holdOut: Int? = nil,
        resolves: Bool = false
    ) {
        self.campaign = campaign
        self.members = members
        self.devices = devices
        self.rate = rate
        self.holdOut = holdOut
        self.resolves = resolves
    }

    /// Whether the campaign leaves a member out. The same user has another draw in each campaign.
    package func isHeldOut(_ user: UserID) -> Bool {
        guard let holdOut else { return false }
        return UserShare(percent: 0..<holdOut).contains(DerivedID.notification(campaign: campaign, recipient: user))
    }

    package enum Members: Hashable, Sendable {
        /// All users with a device in the app.
        case everyone
        case group(UserGroup)
        /// These users. A long list is split into parts: messages that differ only in this and in their ids. The
        /// campaign starts when all parts have arrived. Duplicate users are notified once.
        case users([UserID], part: Int, of: Int)
    }

    /// The maximum rate in pushes a second, and the maximum number of parts.
    package static let maximumRate = 1_000_000
    package static let maximumParts = 100_000
    package static let holdOuts = 1...99
}

extension Audience: Codable {
    private enum CodingKeys: String, CodingKey, CaseIterable {
        case campaign, to, topic, tag, users, part, of, devices, rate, holdOut, resolve
    }
    private enum Kind: String, Codable { case everyone, topic, tag, users }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
        campaign = try container.decode(UUID.self, forKey: .campaign)
        switch try container.decode(Kind.self, forKey: .to) {
        case .everyone: members = .everyone
        case .topic: members = .group(.topic(try container.decode(GroupName.self, forKey: .topic)))
        case .tag: members = .group(.tag(try container.decode(GroupName.self, forKey: .tag)))
        case .users:
            let part = try container.decodeIfPresent(Int.self, forKey: .part) ?? 1
            let of = try container.decodeIfPresent(Int.self, forKey: .of) ?? 1
            guard (1...Audience.maximumParts).contains(of), (1...of).contains(part) else {
                throw DecodingError.dataCorruptedError(
                    forKey: .part, in: container,
                    debugDescription: "expected 1 to `of`, which is at most \(Audience.maximumParts)")
            }
            members = .users(try container.decode([UserID].self, forKey: .users), part: part, of: of)
        }
        devices = try container.decodeIfPresent(DeviceFilter.self, forKey: .devices)
        rate = try container.decodeIfPresent(Int.self, forKey: .rate)
        if let rate, !(1...Audience.maximumRate).contains(rate) {
            throw DecodingError.dataCorruptedError(
                forKey: .rate, in: container, debugDescription: "expected 1 to \(Audience.maximumRate) pushes a second")
        }
        holdOut = try container.decodeIfPresent(Int.self, forKey: .holdOut)
        if let holdOut, !Audience.holdOuts.contains(holdOut) {
            throw DecodingError.dataCorruptedError(
                forKey: .holdOut, in: container, debugDescription: "expected 1 to 99 percent")
        }
        resolves = try container.decodeIfPresent(Bool.self, forKey: .resolve) ?? false
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(campaign, forKey: .campaign)
        switch members {
        case .everyone: try container.encode(Kind.everyone, forKey: .to)
        case .group(.topic(let name)):
            try container.encode(Kind.topic, forKey: .to)
            try container.encode(name, forKey: .topic)
        case .group(.tag(let name)):
            try container.encode(Kind.tag, forKey: .to)
            try container.encode(name, forKey: .tag)
        case .users(let users, let part, let of):
            try container.encode(Kind.users, forKey: .to)
            try container.encode(users, forKey: .users)
            try container.encode(part, forKey: .part)
            try container.encode(of, forKey: .of)
        }
        try container.encodeIfPresent(devices, forKey: .devices)
        try container.encodeIfPresent(rate, forKey: .rate)
        try container.encodeIfPresent(holdOut, forKey: .holdOut)
        if resolves { try container.encode(true, forKey: .resolve) }
    }
}

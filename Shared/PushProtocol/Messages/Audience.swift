package import FoundationEssentials

/// Who shall hear of something without being named as a recipient: a ``Notification`` to an audience becomes a campaign,
/// which the registry works off in the bulk lane.
package struct Audience: Hashable, Sendable {
    /// What is told, in all of its messages the same: the campaign's id, which each member's notification id follows from
    /// (``DerivedID/notification(campaign:recipient:)``). A campaign begins once, however often its message comes.
    package var campaign: UUID
    package var members: Members
    /// Which of their devices; absent: all of them. Who has none of these is not among the audience.
    package var devices: DeviceFilter?
    /// The most pushes to devices a second; absent: as fast as it goes.
    package var rate: Int?

    package init(campaign: UUID, members: Members, devices: DeviceFilter? = nil, rate: Int? = nil) {
        self.campaign = campaign
        self.members = members
        self.devices = devices
        self.rate = rate
    }

    package enum Members: Hashable, Sendable {
        /// Everyone who has a device in the app.
        case everyone
        case group(UserGroup)
        /// These users. A list that is too long for a message comes in parts: messages that differ in nothing but this
        /// and their ids. The campaign begins when all are there; who is listed twice is told once.
        case users([UserID], part: Int, of: Int)
    }

    /// The most pushes a second that can be asked for, and the most parts a list may come in.
    package static let maximumRate = 1_000_000
    package static let maximumParts = 100_000
}

extension Audience: Codable {
    private enum CodingKeys: String, CodingKey, CaseIterable {
        case campaign, to, topic, tag, users, part, of, devices, rate
    }
    private enum Word: String, Codable { case everyone, topic, tag, users }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(exactly: CodingKeys.self)
        campaign = try container.decode(UUID.self, forKey: .campaign)
        switch try container.decode(Word.self, forKey: .to) {
        case .everyone: members = .everyone
        case .topic: members = .group(.topic(try container.decode(GroupName.self, forKey: .topic)))
        case .tag: members = .group(.tag(try container.decode(GroupName.self, forKey: .tag)))
        case .users:
            let part = try container.decodeIfPresent(Int.self, forKey: .part) ?? 1
            let of = try container.decodeIfPresent(Int.self, forKey: .of) ?? 1
            guard (1...Audience.maximumParts).contains(of), (1...of).contains(part) else {
                throw DecodingError.dataCorruptedError(
                    forKey: .part, in: container,
                    debugDescription: "parts count from 1 up to `of`, which is at most \(Audience.maximumParts)")
            }
            members = .users(try container.decode([UserID].self, forKey: .users), part: part, of: of)
        }
        devices = try container.decodeIfPresent(DeviceFilter.self, forKey: .devices)
        rate = try container.decodeIfPresent(Int.self, forKey: .rate)
        if let rate, !(1...Audience.maximumRate).contains(rate) {
            throw DecodingError.dataCorruptedError(
                forKey: .rate, in: container, debugDescription: "expected 1 to \(Audience.maximumRate) pushes a second")
        }
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(campaign, forKey: .campaign)
        switch members {
        case .everyone: try container.encode(Word.everyone, forKey: .to)
        case .group(.topic(let name)):
            try container.encode(Word.topic, forKey: .to)
            try container.encode(name, forKey: .topic)
        case .group(.tag(let name)):
            try container.encode(Word.tag, forKey: .to)
            try container.encode(name, forKey: .tag)
        case .users(let users, let part, let of):
            try container.encode(Word.users, forKey: .to)
            try container.encode(users, forKey: .users)
            try container.encode(part, forKey: .part)
            try container.encode(of, forKey: .of)
        }
        try container.encodeIfPresent(devices, forKey: .devices)
        try container.encodeIfPresent(rate, forKey: .rate)
    }
}

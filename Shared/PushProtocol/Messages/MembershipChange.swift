/// Adds a user to a group or removes them: the members of the commands `subscribe` and `unsubscribe` (with `topic`),
/// `tag` and `untag` (with `tag`).
package struct MembershipChange: Hashable, Sendable {
    package var user: UserID
    package var group: UserGroup
    package var joins: Bool
    /// When the change was made, by the publisher's clock. Later changes take precedence. Absent or in the future:
    /// when the registry processes the command.
    package var at: Timestamp?

    package init(user: UserID, group: UserGroup, joins: Bool, at: Timestamp? = nil) {
        self.user = user
        self.group = group
        self.joins = joins
        self.at = at
    }

    package var verb: DeviceCommand.Command.Verb {
        switch (group, joins) {
        case (.topic, true): .subscribe
        case (.topic, false): .unsubscribe
        case (.tag, true): .tag
        case (.tag, false): .untag
        }
    }
}

extension MembershipChange {
    private enum CodingKeys: String, CodingKey { case verb, user, topic, tag, at }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let verb = try container.decode(DeviceCommand.Command.Verb.self, forKey: .verb)
        switch verb {
        case .subscribe, .unsubscribe: group = .topic(try container.decode(GroupName.self, forKey: .topic))
        case .tag, .untag: group = .tag(try container.decode(GroupName.self, forKey: .tag))
        case .register, .unregister, .deactivate, .suspect, .correct, .cancel:
            throw DecodingError.dataCorruptedError(
                forKey: .verb, in: container, debugDescription: "it changes no group")
        }
        joins = verb == .subscribe || verb == .tag
        user = try container.decode(UserID.self, forKey: .user)
        at = try container.decodeIfPresent(Timestamp.self, forKey: .at)
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(user, forKey: .user)
        switch group {
        case .topic(let name): try container.encode(name, forKey: .topic)
        case .tag(let name): try container.encode(name, forKey: .tag)
        }
        try container.encodeIfPresent(at, forKey: .at)
    }
}

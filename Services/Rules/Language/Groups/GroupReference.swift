package import PushProtocol

/// The members of a group that a rule addresses. They are looked up at decision time.
package struct GroupReference: Hashable, Sendable {
    package var group: String
    /// Restricts the members to these roles; `nil`: all members.
    package var roles: Set<String>?
    package var except: Set<UserID>

    /// The maximum length of the name of a group or a role, in UTF-8 bytes.
    package static let maximumName = 256

    package func accepts(_ member: Member) -> Bool {
        !except.contains(member.user) && (roles.map { roles in member.role.map(roles.contains) ?? false } ?? true)
    }

    package struct Member: Hashable, Sendable {
        package var user: UserID
        package var role: String?

        package init(
            user: UserID, role: String? = nil
        ) {
            self.user = user
            self.role = role
        }
    }
}

extension Rule {
    /// Members of a group, selected by the group's name.
    package struct GroupSelector: Hashable, Sendable {
        package var group: Template
        package var roles: Set<String>?
        /// Paths of user ids to exclude.
        package var except: [String]
    }

    /// All users with a device, or the users of a topic or tag. Only the registry knows them.
    package enum AudienceSelector: Hashable, Sendable {
        case everyone
        case topic(Template)
        case tag(Template)
    }

    package func groupReferences(_ scope: Scope) throws(PlacedProblem) -> [GroupReference] {
        var groupReferences: [GroupReference] = []
        for (index, selector) in groups.enumerated() {
            let place = groups.count == 1 ? "to" : "to.\(index)"
            let group = try selector.group.renderGroupName(scope, place: "\(place).group")
            let excluded = Selector(users: "", except: selector.except)
            groupReferences.append(
                GroupReference(group: group, roles: selector.roles, except: try excluded.excluded(scope, place: place)))
        }
        return groupReferences
    }

    func audienceMembers(_ scope: Scope) throws(PlacedProblem) -> Audience.Members? {
        func name(_ template: Template, _ word: String) throws(PlacedProblem) -> GroupName {
            try template.render(
                scope, place: "to.\(word)", "the \(word)", expected: GroupName.rule, as: GroupName.init(rawValue:))
        }
        switch audience {
        case nil: return Optional.none
        case .everyone: return .everyone
        case .topic(let template): return .group(.topic(try name(template, "topic")))
        case .tag(let template): return .group(.tag(try name(template, "tag")))
        }
    }
}

extension String {
    /// The string as a group or role name; `nil` if it is empty or too long.
    var groupName: String? {
        let name = replacing("\0", with: "")
        return name.isEmpty || name.utf8.count > GroupReference.maximumName ? nil : name
    }
}

extension Template {
    func renderGroupName(_ scope: Scope, place: String) throws(PlacedProblem) -> String {
        try render(scope, place: place, "the group", expected: "a group's name", as: \.groupName)
    }
}

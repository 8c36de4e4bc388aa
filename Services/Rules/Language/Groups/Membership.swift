package import PushProtocol

/// How events change the members of a group.
package struct MembershipSource: Hashable, Sendable {
    /// The position in the rule file: `groups.0`.
    package var place: String
    var when: Rule.Condition
    package var group: Template
    package var users: Rule.Selector
    /// For objects: the path of the role.
    package var role: String?
    /// One role for all of the users.
    var fixedRole: String?
    package var change: Change

    package enum Change: String, Hashable, Sendable { case joined, left, members }

    package func signal(_ event: DomainEvent, _ scope: Scope) throws(RenderError) -> Signal? {
        guard when.events.contains(event.type), when.holds(event) else { return nil }
        do throws(PlacedProblem) {
            let name = try group.renderGroupName(scope, place: "group")
            var members: [UserID: String?] = [:]
            for named in try users.named(scope, place: change.rawValue) {
                members[named.user] = .some(try role(of: named) ?? fixedRole)
            }
            return .membership(group: name, members, change)
        } catch {
            throw RenderError(rule: place, place: error.place, problem: error.problem)
        }
    }

    private func role(of named: Rule.Selector.Named) throws(PlacedProblem) -> String? {
        guard let role else { return nil }
        switch named.element[path: role] {
        case nil: throw PlacedProblem("role", .missing(path: "\(named.path).\(role)"))
        case .null: return nil
        case .some(let value):
            guard let name = value.shown?.groupName else {
                throw PlacedProblem("role", .unsuitable(path: "\(named.path).\(role)", expected: "a role"))
            }
            return name
        }
    }
}

import Yams

extension RuleFileReader {
    /// Reads `groups`: the events that change group memberships.
    func groups(_ field: Field, _ catalog: [String: EventShape]) -> [MembershipSource] {
        (list(field) ?? []).compactMap { membership($0, catalog) }
    }

    private func membership(_ field: Field, _ catalog: [String: EventShape]) -> MembershipSource? {
        let changes = ["joined", "left", "members"]
        let keys = ["event", "data", "group"] + changes + ["id", "where", "role", "as"]
        guard let table = table(field, keys: keys, required: ["event", "group"]),
            let when = condition(field, table, catalog: catalog)
        else { return nil }
        let given = changes.filter { table[$0] != nil }
        guard given.count == 1, let name = given.first, let change = MembershipSource.Change(rawValue: name) else {
            report(field, "needs exactly one of “joined”, “left” and “members”: the path of the users")
            return nil
        }
        let shapes = when.events.compactMap { catalog[$0] }
        guard let users = table[name].flatMap({ path($0, shapes) }),
            let group = table["group"].flatMap({ template($0, shapes) })
        else { return nil }
        for key in ["where", "role"] where table["id"] == nil {
            if let value = table[key] { report(value, "set “id” to the field of each object that has the user id") }
        }
        for key in ["role", "as"] where change == .left {
            if let value = table[key] { report(value, "“left” takes no role") }
        }
        if let fixed = table["as"], table["role"] != nil { report(fixed, "set only one of “role” and “as”") }
        return MembershipSource(
            place: field.path, when: when, group: group,
            users: selector(users, table, shapes), role: table["role"].flatMap { path($0, shapes, below: users) },
            fixedRole: table["as"].flatMap(text), change: change)
    }

    /// Reads `group`, `role` and `except` of a rule's recipients.
    func groupSelector(_ table: [String: Field], _ shapes: [EventShape]) -> Rule.GroupSelector? {
        guard let group = table["group"].flatMap({ template($0, shapes) }) else { return nil }
        let roles = table["role"].flatMap(oneOrMore)?.compactMap { text($0) }
        return Rule.GroupSelector(
            group: group, roles: roles.map(Set.init),
            except: table["except"].flatMap(oneOrMore)?.compactMap { path($0, shapes) } ?? [])
    }

    /// Reads `audience`, `topic` or `tag` of a rule's recipients.
    func audienceSelector(_ table: [String: Field], _ shapes: [EventShape]) -> Rule.AudienceSelector? {
        if let field = table["topic"] { return template(field, shapes).map(Rule.AudienceSelector.topic) }
        if let field = table["tag"] { return template(field, shapes).map(Rule.AudienceSelector.tag) }
        guard let field = table["audience"], let word = text(field) else { return nil }
        guard word == "everyone" else {
            report(field, "the only audience is “everyone”; use “topic” or “tag” in place of “audience”")
            return nil
        }
        return .everyone
    }
}

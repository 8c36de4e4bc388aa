extension PersonalWords {
    static let missingID =
        "“recipient” is the object under “to.users” that names the user; set “id” under “to”, "
        + "and use it in “say”, “how” and “digest.keep” only"
}

extension EventShape {
    /// The shape with the variable `recipient`: the objects that these selectors find. An event with its own member
    /// `recipient` keeps it.
    func naming(_ selectors: [Rule.Selector]) -> EventShape {
        guard !paths.contains(PersonalWords.variable) else { return self }
        var shape = self
        for selector in selectors where selector.id != nil {
            shape.paths.insert(PersonalWords.variable)
            for path in paths where path.hasPrefix("\(selector.users).") {
                shape.paths.insert(PersonalWords.variable + path.dropFirst(selector.users.count))
            }
        }
        return shape
    }
}

extension RuleFileReader {
    /// Reports recipients without an object in a rule whose texts use it.
    func checkPersonal(_ rule: Rule, _ to: Field) {
        guard rule.isPersonal else { return }
        if !rule.groups.isEmpty || rule.audience != nil || rule.following != nil {
            report(
                to, "the texts use “recipient”, which only users of the event have; address them with “users” and “id”")
        } else if rule.to.contains(where: { $0.id == nil }) {
            report(to, PersonalWords.missingID)
        }
        if rule.scopeTags.contains(where: { PersonalWords.isPersonal($0.path) }) {
            report(to, "a “scope” is the same for all recipients; it takes no “recipient”")
        }
        if rule.how.kind == .liveActivity {
            report(to, "“content-state” is the same for all recipients; remove “recipient” from the texts")
        }
    }
}

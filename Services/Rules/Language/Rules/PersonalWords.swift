import PushProtocol

/// A rule whose texts use the object under `to.users` that names the recipient, as the variable `recipient`.
///
/// An event whose data has a member `recipient` keeps it; the variable is then that member.
enum PersonalWords {
    /// The name of the variable.
    static let variable = "recipient"

    static func isPersonal(_ path: String) -> Bool { path == variable || path.hasPrefix("\(variable).") }
}

extension Rule {
    /// The variables of the texts and options that may differ for each recipient.
    private var personalTags: [TemplateTag] {
        say.tags + [how.thread, how.collapseKey].compactMap(\.self).flatMap(\.tags) + (how.badge?.tags ?? [])
            + how.overrideTags + scopeTags + (policy.digest.map { DataTemplate.object($0.keep).tags } ?? [])
    }

    /// The variables of options that are the same for all recipients.
    var scopeTags: [TemplateTag] { [how.scope, how.devices?.unless?.scope].compactMap(\.self).flatMap(\.tags) }

    /// Whether a text or option uses the variable `recipient`.
    var namesRecipient: Bool { personalTags.contains { PersonalWords.isPersonal($0.path) } }
}

extension Scope {
    /// The scope with the object that names a recipient.
    func naming(_ recipient: JSONValue) -> Scope {
        var members = root.object ?? [:]
        members[PersonalWords.variable] = recipient
        var scope = Scope(root: .object(members), localization: localization)
        scope.moment = moment
        return scope
    }
}

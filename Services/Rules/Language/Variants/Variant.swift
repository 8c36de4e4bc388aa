package import PushProtocol

extension Rule {
    /// One of several forms of a rule. Each user gets the form that a hash of app, rule and user selects.
    package struct Variant: Hashable, Sendable {
        /// The rule's name in the file. The name of the variant's own rule is `<rule>-<variant>`.
        package var rule: String
        package var name: String
        package var share: UserShare
        /// Whether its users get nothing, so that the effect of the notification can be measured.
        package var isHeldOut = false

        package func includes(_ user: UserID, of app: AppID) -> Bool {
            share.contains(user, in: ["variant", app.rawValue, rule])
        }
    }
}

/// Users of an app that get no notification of certain types, to measure the effect of all of them.
package struct HoldOut: Hashable, Sendable {
    package var share: UserShare
    /// Names of ``PreferenceType``s. Other notifications reach these users.
    package var types: Set<String>

    /// Whether the user gets no notification of this type.
    package func includes(_ user: UserID, of app: AppID, type: String?) -> Bool {
        type.map(types.contains) ?? false && share.contains(user, in: ["hold-out", app.rawValue])
    }
}

extension NotificationDraft {
    /// Whether the user gets nothing because of a hold-out of the file or of the rule's variants.
    package func holdsOut(_ user: UserID, _ defaults: AppDefaults) -> Bool {
        // A channel is no user: the hash of its label would hold it out.
        guard !isToChannels else { return false }
        return variant?.isHeldOut ?? false
            || defaults.holdOut?.includes(user, of: rendered.app, type: policy.type) ?? false
    }

    /// Whether the user is a recipient of the rule, among its variants.
    func concerns(_ user: UserID) -> Bool { variant?.includes(user, of: rendered.app) ?? true }
}

/// The settings of an app's rule file that apply to all users.
package struct AppDefaults: Hashable, Sendable {
    package var zone: Zone = .utc
    /// The language of texts that are not translations.
    package var language: Language = .english
    package var types: [String: PreferenceType] = [:]
    package var caps: [String: Cap] = [:]
    /// Whether a notification that its user reads or dismisses on one device is removed from the others.
    package var clearsRead = false
    package var holdOut: HoldOut?
    /// The notifications a day that the app promises a user at most. It is for reports, and limits nothing.
    package var dailyPromise: Int?
    /// The quiet hours of users without their own. Only a ``RuleBranch`` sets them, not a rule file.
    package var quietHours: QuietHours?

    /// The defaults of an app without a rule file.
    package static let standard = AppDefaults().withDirectType
}

extension Rule.Policy {
    package var isCapped: Bool { !caps.isEmpty }
}

extension AppDefaults {
    package func isCritical(_ policy: Rule.Policy) -> Bool { policy.type.flatMap { types[$0]?.isCritical } ?? false }
}

import FoundationEssentials
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
        /// The time from which its users get the first variant.
        package fileprivate(set) var stoppedAt: Timestamp?
        /// For the first variant: the shares of stopped variants.
        fileprivate var takenOver: [TakenShare] = []

        package init(rule: String, name: String, share: UserShare, isHeldOut: Bool = false) {
            self.rule = rule
            self.name = name
            self.share = share
            self.isHeldOut = isHeldOut
        }

        /// The users of the variant for an event that arrived at this time.
        func draw(at arrival: Timestamp) -> VariantDraw {
            var shares: [UserShare] = []
            if stoppedAt.map({ arrival < $0 }) ?? true { shares.append(share) }
            shares += takenOver.filter { $0.from <= arrival }.map(\.share)
            return VariantDraw(rule: rule, shares: shares, isHeldOut: isHeldOut)
        }
    }

    fileprivate struct TakenShare: Hashable, Sendable {
        let share: UserShare
        let from: Timestamp
    }
}

/// The users of a variant for one event.
struct VariantDraw: Hashable, Sendable {
    let rule: String
    let shares: [UserShare]
    let isHeldOut: Bool

    func includes(_ user: UserID, of app: AppID) -> Bool {
        let draw = UserShare.draw(user, in: ["variant", app.rawValue, rule])
        return shares.contains { $0.contains(draw) }
    }
}

/// Users of an app that get no notification of certain types, to measure the effect of all of them.
package struct HoldOut: Hashable, Sendable {
    package var share: UserShare
    /// Names of ``PreferenceType``s. Other notifications reach these users.
    package var types: Set<String>

    /// Whether the user gets no notification of this type.
    package func includes(_ user: UserID, of app: AppID, type: String?) -> Bool {
        type.map(types.contains) ?? false && share.contains(UserShare.draw(user, in: ["hold-out", app.rawValue]))
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

extension UserShare {
    /// The user's id in the draw with these names.
    fileprivate static func draw(_ user: UserID, in names: [String]) -> UUID {
        DerivedID.uuid5(DerivedID.namespace, ["share"] + names + [user.rawValue])
    }
}

// MARK: - Stops

/// The variants that are stopped, by app.
package typealias VariantStops = [AppID: [String: Timestamp]]

extension RuleSets {
    /// Returns the rules with these stops instead of earlier ones.
    package func stopping(_ stops: VariantStops) -> RuleSets {
        map { $0.stopping(stops[$0.app] ?? [:]) }
    }
}

extension RuleSet {
    /// Returns the rules with these stops instead of earlier ones.
    ///
    /// Events that arrived before the time of a stop keep the variant, so that a step of a fan-out and a redelivered event
    /// have the users of the first delivery. The first variant and unknown names are ignored.
    ///
    /// - Parameter stops: times by the names of the variants' rules.
    package func stopping(_ stops: [String: Timestamp]) -> RuleSet {
        guard stops != self.stops else { return self }
        var rules = rules
        var first: [String: Int] = [:]
        for index in rules.indices {
            guard var variant = rules[index].variant else { continue }
            (variant.stoppedAt, variant.takenOver) = (nil, [])
            if let place = first[variant.rule] {
                variant.stoppedAt = stops[rules[index].name]
                if let from = variant.stoppedAt {
                    rules[place].variant?.takenOver.append(Rule.TakenShare(share: variant.share, from: from))
                }
            } else {
                first[variant.rule] = index
            }
            rules[index].variant = variant
        }
        return with(rules)
    }
}

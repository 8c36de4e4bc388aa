import PushProtocol

/// A built-in rule for direct notifications (``DirectNotification``). Rule files cannot use these names.
///
/// Each preference type has its own copies of ``direct`` and ``pushOnly``, such as `direct.chat`, because a held
/// notification keeps only its rule's name. No rule of a file has a name with a dot.
package enum DirectRule: String, CaseIterable, Sendable {
    /// To users or the members of a group.
    case direct
    /// The same without an inbox entry.
    case pushOnly = "direct-push-only"
    /// To users or the members of a group, without a text. Users' settings do not apply.
    case silent = "direct-silent"
    case topic = "direct-topic"
    case tag = "direct-tag"
    case everyone = "direct-everyone"

    init(_ direct: DirectNotification) {
        switch direct.recipients {
        case .audience(.topic): self = .topic
        case .audience(.tag): self = .tag
        case .everyone: self = .everyone
        case .users, .group: self = !direct.isVisible ? .silent : direct.isPushOnly ? .pushOnly : .direct
        }
    }

    private var hasPolicy: Bool {
        switch self {
        case .direct, .pushOnly: true
        case .silent, .topic, .tag, .everyone: false
        }
    }

    /// Returns the name of the rule for a preference type, as decisions and counts show it.
    package func name(type: String) -> String {
        hasPolicy && type != DirectNotification.defaultType ? "\(rawValue).\(type)" : rawValue
    }

    /// Returns the built-in rules of an app, by name.
    static func rules(_ defaults: AppDefaults) -> [String: Rule] {
        var rules: [String: Rule] = [:]
        for kind in allCases {
            guard kind.hasPolicy else {
                rules[kind.rawValue] = kind.rule(kind.rawValue, policy: .standard)
                continue
            }
            for type in defaults.types.keys {
                let name = kind.name(type: type)
                rules[name] = kind.rule(name, policy: kind.policy(type: type, defaults))
            }
        }
        return rules
    }

    /// The policy of a type. Its pushes count in the file's cap `direct`, if there is one.
    ///
    /// Without an inbox, a notification over the cap is held, because it would otherwise be lost.
    private func policy(type: String, _ defaults: AppDefaults) -> Rule.Policy {
        var policy = Rule.Policy.standard
        policy.type = type
        if defaults.caps[DirectNotification.defaultType] != nil { policy.caps = [DirectNotification.defaultType] }
        if self == .pushOnly {
            policy.inbox = false
            policy.overflow = .hold
        }
        return policy
    }

    /// The texts and recipients of these rules are in the event, so the rules themselves have none.
    private func rule(_ name: String, policy: Rule.Policy) -> Rule {
        Rule(
            name: name, when: Rule.Condition(events: [DirectNotification.eventType]), to: [],
            say: Rule.MessageTemplate(), how: Rule.DeliveryOptions(), policy: policy)
    }
}

extension AppDefaults {
    /// These settings with the preference type of direct notifications, unless the file describes it itself.
    var withDirectType: AppDefaults {
        guard types[DirectNotification.defaultType] == nil else { return self }
        var defaults = self
        defaults.types[DirectNotification.defaultType] = PreferenceType(about: "Messages from the app's team")
        return defaults
    }
}

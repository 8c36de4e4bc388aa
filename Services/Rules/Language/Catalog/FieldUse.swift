package import PushProtocol

/// One use of an event's field by a rule or a signal.
package struct FieldUse: Hashable, Sendable {
    /// The dotted path in the event's data; below `event`, an attribute.
    package var path: String
    /// The place in the rule file: `rules.chat-message.say.body`.
    package var place: String
    /// Whether the event is refused without the field.
    package var isRequired: Bool
    /// A JSON Schema of the accepted values; `nil`: any.
    package var schema: JSONValue?

    /// The name of an attribute, such as `subject`; `nil` for a field of the data.
    package var attribute: String? {
        let prefix = "\(Scope.attributes)."
        return path.hasPrefix(prefix) ? String(path.dropFirst(prefix.count)) : nil
    }
}

/// Collects the uses of an event's fields below one rule or signal.
struct FieldUseCollector {
    /// The rule's or signal's place in the file.
    let root: String
    /// The paths in the event's examples. A name inside a section is looked up in them.
    let known: Set<String>
    private(set) var uses: [FieldUse] = []
    /// The paths of the objects that the variable `recipient` stands for; empty for a rule that does not use it.
    private(set) var recipients: [String] = []

    mutating func add(_ path: String, at place: String, isRequired: Bool = true, _ schema: JSONValue? = nil) {
        guard path != "." else { return }
        if !recipients.isEmpty, PersonalWords.isPersonal(path) {
            let rest = path.dropFirst(PersonalWords.variable.count)
            // Optional, because a schema cannot require a member of each recipient alone.
            for users in recipients { use(users + rest, place, isRequired: false, nil) }
        } else {
            use(path, place, isRequired: isRequired, schema)
        }
    }

    private mutating func use(_ path: String, _ place: String, isRequired: Bool, _ schema: JSONValue?) {
        let use = FieldUse(path: path, place: "\(root).\(place)", isRequired: isRequired, schema: schema)
        if !uses.contains(use) { uses.append(use) }
    }

    mutating func add(_ template: Template?, at place: String) {
        if let template { add(template.parts, at: place, sections: [], isConditional: false) }
    }

    private mutating func add(
        _ parts: [TemplatePart], at place: String, sections: [String], isConditional: Bool
    ) {
        for part in parts {
            switch part {
            case .text: break
            case .variable(let tag):
                let isOptional = tag.filters.contains(.optional)
                add(
                    resolved(tag.path, in: sections), at: place, isRequired: !isOptional && !isConditional,
                    // `nil` alone would be JSON's null.
                    isConditional ? JSONValue?.none : AcceptedValue.shown(tag.filters).schema(orNull: isOptional))
            case .section(let tag, let inner), .inverted(let tag, let inner):
                let path = resolved(tag.path, in: sections)
                if !tag.isForm {
                    let accepted = isConditional ? nil : AcceptedValue.filtered(tag.filters)
                    add(path, at: place, isRequired: false, accepted?.schema(orNull: true))
                }
                let opens = !tag.isForm && !tag.isPlural
                add(inner, at: place, sections: opens ? sections + [path] : sections, isConditional: true)
            }
        }
    }

    /// The path in the event of a name in sections. The innermost section whose examples have the name counts.
    private func resolved(_ path: String, in sections: [String]) -> String {
        guard path != "." else { return sections.last ?? path }
        return sections.reversed().map { "\($0).\(path)" }.first(where: known.contains) ?? path
    }

    mutating func add(_ template: DataTemplate?, at place: String, _ schema: JSONValue? = nil) {
        switch template {
        case nil, .constant: break
        case .value(let path, let filters):
            // A null value stays null, whatever the filters.
            let isOptional = filters.contains(.optional)
            add(
                path, at: place, isRequired: !isOptional,
                schema ?? AcceptedValue.filtered(filters)?.schema(orNull: true))
        case .text(let template): add(template, at: place)
        case .array(let elements):
            for (index, element) in elements.enumerated() { add(element, at: "\(place).\(index)") }
        case .object(let members): add(members, at: place)
        }
    }

    mutating func add(_ members: [DataTemplate.Member]?, at place: String) {
        for member in members ?? [] { add(member.value, at: "\(place).\(member.name)") }
    }

    mutating func add(_ selector: Rule.Selector, at place: String) {
        add(selector.users, at: place, AcceptedValue.users(selector))
        for path in selector.except { add(path, at: "\(place).except", AcceptedValue.usersOrNull) }
    }
}

// MARK: - Rules and signals

extension FieldUseCollector {
    mutating func add(_ rule: Rule) {
        defer { recipients = [] }
        for (index, selector) in rule.to.enumerated() { add(selector, at: rule.to.count == 1 ? "to" : "to.\(index)") }
        for selector in rule.groups {
            add(selector.group, at: "to.group")
            for path in selector.except { add(path, at: "to.except", AcceptedValue.usersOrNull) }
        }
        switch rule.audience {
        case .topic(let template): add(template, at: "to.topic")
        case .tag(let template): add(template, at: "to.tag")
        case .everyone, nil: break
        }
        for path in rule.segment?.except ?? [] { add(path, at: "to.except", AcceptedValue.usersOrNull) }
        if let following = rule.following { add(following.name, at: "to.\(following.kind.rawValue)") }
        if rule.isPersonal { recipients = rule.to.map(\.users) }
        add(rule.say, at: "say")
        for (language, translation) in rule.say.translations {
            add(translation, at: "say.languages.\(language.tag)")
        }
        add(rule.how)
        add(rule.policy)
    }

    private mutating func add(_ say: Rule.MessageTemplate, at place: String) {
        add(say.title, at: "\(place).title")
        add(say.subtitle, at: "\(place).subtitle")
        add(say.body, at: "\(place).body")
        add(say.deepLink, at: "\(place).deep-link")
        add(say.image, at: "\(place).image")
        add(say.data, at: "\(place).data")
        add(say.payload, at: "\(place).payload")
        guard let activity = say.activity else { return }
        let place = "\(place).live-activity"
        add(activity.state, at: "\(place).content-state")
        add(activity.attributes, at: "\(place).attributes")
        add(activity.relevance, at: "\(place).relevance-score")
        add(activity.channel, at: "\(place).input-push-channel")
        for (moment, name) in [(activity.staleDate, "stale-date"), (activity.dismissalDate, "dismissal-date")] {
            if let path = moment?.at { add(path, at: "\(place).\(name)", AcceptedValue.timeOrSeconds) }
        }
    }

    private mutating func add(_ how: Rule.DeliveryOptions) {
        add(how.badge, at: "how.badge", AcceptedValue.badge)
        add(how.thread, at: "how.thread")
        add(how.collapseKey, at: "how.collapse-key")
        add(how.scope, at: "how.scope")
        add(how.devices?.unless?.scope, at: "how.unless.scope")
        add(how.apns?.payload, at: "how.apns.payload")
        add(how.fcm?.message, at: "how.fcm.message")
        add(how.web?.message, at: "how.web.message")
    }

    private mutating func add(_ policy: Rule.Policy) {
        for template in policy.mutes { add(template, at: "policy.mutes") }
        add(policy.item, at: "policy.item")
        if let at = policy.schedule?.at {
            add(at, at: "policy.schedule.at", AcceptedValue.date.schema(orNull: false))
        }
        add(policy.digest?.bucket, at: "policy.digest.bucket")
        add(policy.digest?.keep, at: "policy.digest.keep")
        add(policy.dedupe?.key, at: "policy.dedupe.key")
    }

    mutating func add(_ source: SignalSource) {
        if let user = source.user { add(user, at: "user", AcceptedValue.user) }
        if let device = source.device {
            add(device, at: "device", AcceptedValue.shown([]).schema(orNull: false))
        }
        add(source.thread, at: source.kind.isAboutItem ? "item" : "thread")
    }

    /// Adds the item, and the texts of the rule, which the event renders.
    mutating func add(_ source: ReplacementSource, _ rule: Rule?) {
        add(source.item, at: "item")
        guard let rule else { return }
        add(rule.say, at: "say")
        for (language, translation) in rule.say.translations {
            add(translation, at: "say.languages.\(language.tag)")
        }
        add(rule.how)
        for template in rule.policy.mutes { add(template, at: "policy.mutes") }
        add(rule.policy.digest?.bucket, at: "policy.digest.bucket")
        add(rule.policy.digest?.keep, at: "policy.digest.keep")
    }

    mutating func add(_ source: MembershipSource) {
        add(source.group, at: "group")
        add(source.users, at: source.change.rawValue)
    }
}

/// The values that a use accepts, as JSON Schemas.
///
/// A schema never refuses a value that the rules accept. It may accept more, such as a date in month 13.
enum AcceptedValue {
    case text, number, scalar, list, nonemptyList, date, time

    static let user: JSONValue = ["type": ["string", "integer"]]
    static let usersOrNull: JSONValue = [
        "anyOf": [["type": ["string", "integer", "null"]], ["type": "array", "items": user]]
    ]
    static let badge: JSONValue = ["type": ["integer", "null"], "minimum": 0, "maximum": 99999]
    static let timeOrSeconds: JSONValue = [
        "anyOf": [["type": "integer", "minimum": 0], AcceptedValue.time.schema(orNull: false)]
    ]

    /// The users that a selector accepts: one or a list, as ids or as objects with an id.
    static func users(_ selector: Rule.Selector) -> JSONValue {
        guard let id = selector.id else { return ["anyOf": [user, ["type": "array", "items": user]]] }
        var tree = FieldTree()
        tree.add(id.split(separator: ".").map(String.init)[...], isRequired: true, user)
        if let badge = selector.badge {
            tree.add(badge.split(separator: ".").map(String.init)[...], isRequired: true, AcceptedValue.badge)
        }
        var element: JSONValue = .object(tree.schema.object ?? [:])
        if let matching = selector.matching {
            element = ["type": "object"]
            if let condition = matching.schema {
                element = ["type": "object", "if": condition, "then": tree.schema]
            }
        }
        return ["anyOf": [element, ["type": "array", "items": element]]]
    }

    /// The values that filters accept; `nil`: any. The innermost filter counts.
    static func filtered(_ filters: [Filter]) -> AcceptedValue? {
        switch filters.last(where: { $0 != .optional }) {
        case .excerpt, .capitalized, .uppercased, .lowercased: .text
        case .km, .distance, .number, .currency, .plural: .number
        case .count: .list
        case .first, .last: .nonemptyList
        case .date: .date
        case .time, .dateTime: .time
        case .optional, nil: nil
        }
    }

    /// The values that a variable of a text accepts.
    static func shown(_ filters: [Filter]) -> AcceptedValue { filtered(filters) ?? .scalar }

    func schema(orNull isNullable: Bool) -> JSONValue {
        func type(_ names: [String]) -> JSONValue {
            .array((names + (isNullable ? ["null"] : [])).map(JSONValue.string))
        }
        return switch self {
        case .text: ["type": type(["string"])]
        case .number: ["type": type(["number"])]
        case .scalar: ["type": type(["string", "number", "boolean"])]
        case .list: ["type": type(["array"])]
        case .nonemptyList: ["type": type(["array"]), "minItems": 1]
        case .date: ["type": type(["string"]), "pattern": #"^\d{4}-\d{2}-\d{2}([Tt ].+)?$"#]
        case .time: ["type": type(["string"]), "pattern": #"^\d{4}-\d{2}-\d{2}[Tt ].+$"#]
        }
    }
}

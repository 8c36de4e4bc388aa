import Primitives
import PushProtocol
import Yams

extension RuleFileReader {
    /// Reads one rule; `nil` if a required part is invalid.
    ///
    /// - Parameter surface: the rule's part of a live surface; `nil` for a rule under `rules`.
    func rule(
        _ field: Field, name: String, catalog: [String: EventShape], defaults: AppDefaults,
        surface: Rule.Surface? = nil
    ) -> Rule? {
        let found = problems.count
        guard let table = table(field, keys: Self.ruleKeys, required: ["when", "to"]) else { return nil }
        _ = table["about"].map { text($0) }
        let when = table["when"].flatMap { condition($0, catalog: catalog) }
        let shapes = when?.events.compactMap { catalog[$0] } ?? []
        let to = table["to"].flatMap { address($0, shapes) }
        let personal = shapes.map { $0.naming(to?.users ?? []) }
        let say = table["say"].map { messageTemplate($0, personal, isWhole: true) } ?? Rule.MessageTemplate()
        let how = table["how"].map { options($0, personal) } ?? Rule.DeliveryOptions()
        let policy = table["policy"].map { self.policy($0, shapes, personal, defaults) } ?? Rule.Policy()
        guard let when, let to, let say, let how, let policy else { return nil }
        var rule = Rule(
            name: name, when: when, to: to.users, groups: to.groups, audience: to.audience,
            audienceOptions: to.audienceOptions, segment: to.segment, following: to.following, say: say, how: how,
            policy: policy)
        rule.isPersonal = rule.namesRecipient && !shapes.contains { $0.paths.contains(PersonalWords.variable) }
        rule.surface = surface
        if surface != nil || rule.visibility == .momentary {
            rule.policy.applyMomentaryDefaults(setsQuietHours: table["policy"].map(setsQuietHours) ?? false)
        }
        if problems.count == found {
            checkSense(rule, field)
            checkKind(rule, field)
            if let field = table["policy"], surface == nil { checkPolicy(rule, field) }
            checkPrivacy(rule, field)
            checkDevices(rule, table["how"] ?? field)
            checkPersonal(rule, table["to"] ?? field)
            checkSegment(rule, table["to"] ?? field)
        }
        return rule
    }

    /// Reports well-formed keys of a rule that contradict each other.
    private func checkSense(_ rule: Rule, _ field: Field) {
        let hasText = rule.say.title != nil || rule.say.subtitle != nil || rule.say.body != nil
        switch rule.how.kind {
        case .alert where rule.policy.digestsAll && rule.say != Rule.MessageTemplate():
            report(field, "a rule with a “digest” takes no “say” of its own: only the “say” of the “digest” is sent")
        case .alert where !rule.policy.digestsAll && rule.say.title == nil && rule.say.body == nil:
            report(field, "an alert needs a title or a body under “say”; or use “as: silent” under “how”")
        case .silent where hasText:
            report(field, "a silent push shows nothing: it cannot have a title, a subtitle or a body")
        case .silent where rule.how.sound != nil || rule.how.interruptionLevel != nil:
            report(field, "a silent push cannot have a sound or an interruption level")
        case .silent where rule.how.badge != nil:
            report(field, "a silent push cannot have a badge; use “as: badge-only”")
        case .badgeOnly where hasText || rule.how.sound != nil || rule.how.interruptionLevel != nil:
            report(field, "“as: badge-only” cannot have texts, a sound or an interruption level")
        case .badgeOnly
        where rule.how.badge == nil && !rule.how.countsUnread && rule.to.allSatisfy({ $0.badge == nil }):
            report(field, "“as: badge-only” needs a “badge”, under “how” or in “to”")
        case .alert, .silent, .badgeOnly, .voip, .pushToTalk, .liveActivity, .location, .complication, .fileProvider,
            .mdm, .widgets, .controls:
            break
        }
    }

    private func setsQuietHours(_ policy: Field) -> Bool {
        policy.node.mapping?.keys.contains { $0.scalar?.string == "quiet-hours" } ?? false
    }

    /// Checks that a rule has a preview if, and only if, its privacy level needs one.
    private func checkPrivacy(_ rule: Rule, _ field: Field) {
        let wordings = [rule.policy.digestsAll ? nil : rule.say, rule.policy.digest?.say].compactMap(\.self)
        switch rule.how.privacy {
        case .full:
            if wordings.contains(where: { $0.preview != nil }) {
                report(field, "a “preview” needs “privacy: generic” or “privacy: id-only” under “how”")
            }
        case .generic, .idOnly:
            if wordings.contains(where: { $0.preview?.title == nil && $0.preview?.body == nil }) {
                report(field, "“privacy: \(rule.how.privacy.rawValue)” needs a “preview” under “say”")
            }
            if rule.how.kind != .alert {
                report(field, "“as: \(rule.how.kind.rawValue)” has no preview: “privacy” needs “as: alert”")
            }
            if rule.how.privacy == .idOnly, !rule.how.overrideTags.isEmpty {
                report(
                    field, "“privacy: id-only” pushes nothing of the event: “apns”, “fcm” and “web” take no variables")
            }
        }
    }

    private func checkPolicy(_ rule: Rule, _ field: Field) {
        if rule.segment == nil, rule.audience != nil || rule.following != nil {
            report(
                field,
                "the recipients are not known here: the rule takes no “policy” and has no inbox; use a “group” for both"
            )
        } else if rule.visibility == .momentary {
            checkMomentary(rule, field)
        } else if rule.visibility == .none {
            report(field, "“as: \(rule.how.kind.rawValue)” takes no policy here: it does not alert the user")
        } else if rule.policy.presence == .thread, rule.how.thread == nil {
            report(field, "“presence: thread” needs a “thread” under “how”")
        }
    }
}

// MARK: - when

extension RuleFileReader {
    private func condition(_ field: Field, catalog: [String: EventShape]) -> Rule.Condition? {
        table(field, keys: ["event", "data", "source", "subject"], required: ["event"])
            .flatMap { condition(field, $0, catalog: catalog) }
    }

    func condition(_ field: Field, _ table: [String: Field], catalog: [String: EventShape]) -> Rule.Condition? {
        guard let types = table["event"].flatMap(oneOrMore) else { return nil }
        let events = types.compactMap { eventType($0, catalog) }
        let shapes = events.compactMap { catalog[$0] }
        let data = table["data"].flatMap { field in checkedPattern(field, shapes) { $0 } }
        var attributes = Pattern()
        for name in ["source", "subject"] {
            guard let value = table[name], let matchers = matchers(value) else { continue }
            attributes.fields.append(Pattern.Field(name: name, test: .leaf(matchers)))
        }
        guard events.count == types.count else { return nil }
        return Rule.Condition(events: events, data: data, attributes: attributes.fields.isEmpty ? nil : attributes)
    }

    private func eventType(_ field: Field, _ catalog: [String: EventShape]) -> String? {
        guard let name = text(field) else { return nil }
        if catalog[name] != nil { return name }
        let hint =
            NearestMatch.of(name, among: catalog.keys).map { "did you mean “\($0)”?" }
            ?? "describe it under “events”"
        report(field, "the event “\(name)” is not known; \(hint)")
        return nil
    }

    /// Reads a pattern, and reports fields that no example has. `place` converts a field's path to a path in the event.
    func checkedPattern(_ field: Field, _ shapes: [EventShape], place: (String) -> String) -> Pattern? {
        guard let pattern = pattern(field) else { return nil }
        for path in pattern.paths {
            let key = "\(field.path).\(path)"
            checkPath(place(path), shapes, line: line(of: key), key: key)
        }
        return pattern
    }
}

// MARK: - to

extension RuleFileReader {
    private func address(_ field: Field, _ shapes: [EventShape]) -> Address? {
        guard let fields = oneOrMore(field) else { return nil }
        var address = Address()
        for field in fields {
            guard let mapping = field.node.mapping else {
                report(field, "expected keys with values, not \(field.node.kind)")
                return nil
            }
            let names = Set(mapping.keys.compactMap { $0.scalar?.string })
            if names.contains("group") {
                let keys = ["group", "role", "except"]
                guard let table = table(field, keys: keys, required: ["group"]),
                    let selector = groupSelector(table, shapes)
                else { return nil }
                address.groups.append(selector)
            } else if !names.isDisjoint(with: Rule.Following.DestinationKind.allCases.map(\.rawValue)) {
                guard let following = following(field, shapes) else { return nil }
                if fields.count > 1 {
                    report(field, "no other recipients can be added: only the provider knows the subscribers")
                }
                address.following = following
            } else if names.contains("segment") {
                guard let table = table(field, keys: ["segment", "except"]), let segment = table["segment"],
                    let (audience, options) = audience(segment, shapes, keys: RuleFileReader.audienceKeys)
                else { return nil }
                if fields.count > 1 {
                    report(field, "no other recipients can be added: only the token registry knows the segment")
                }
                (address.audience, address.audienceOptions) = (audience, options)
                address.segment = Rule.SegmentSelector(
                    except: table["except"].flatMap(oneOrMore)?.compactMap { path($0, shapes) } ?? [])
            } else if !names.isDisjoint(with: ["audience", "topic", "tag"]) {
                guard let (audience, options) = audience(field, shapes, keys: RuleFileReader.audienceKeys + ["rate"])
                else { return nil }
                if fields.count > 1 {
                    report(field, "no other recipients can be added: only the token registry knows the audience")
                }
                (address.audience, address.audienceOptions) = (audience, options)
            } else {
                guard let selector = userSelector(field, shapes) else { return nil }
                address.users.append(selector)
            }
        }
        return address
    }

    private struct Address {
        var users: [Rule.Selector] = []
        var groups: [Rule.GroupSelector] = []
        var audience: Rule.AudienceSelector?
        var audienceOptions = Rule.AudienceOptions()
        var segment: Rule.SegmentSelector?
        var following: Rule.Following?
    }

    private func userSelector(_ field: Field, _ shapes: [EventShape]) -> Rule.Selector? {
        guard let table = table(field, keys: ["users", "id", "where", "badge", "except"], required: ["users"]),
            let users = table["users"].flatMap({ path($0, shapes) })
        else { return nil }
        for key in ["where", "badge"] where table["id"] == nil {
            if let value = table[key] {
                report(value, "set “id” to the field of each object that has the user id")
            }
        }
        return selector(users, table, shapes)
    }

    /// Reads the other keys of a selector. `users` is the path of the users.
    func selector(_ users: String, _ table: [String: Field], _ shapes: [EventShape]) -> Rule.Selector {
        Rule.Selector(
            users: users, id: table["id"].flatMap { path($0, shapes, below: users) },
            matching: table["id"] == nil
                ? nil : table["where"].flatMap { field in checkedPattern(field, shapes) { "\(users).\($0)" } },
            badge: table["badge"].flatMap { path($0, shapes, below: users) },
            except: table["except"].flatMap(oneOrMore)?.compactMap { path($0, shapes) } ?? [])
    }

    /// Reads the path of an event field, written without braces.
    func path(_ field: Field, _ shapes: [EventShape], below parent: String? = nil) -> String? {
        guard let path = text(field) else { return nil }
        guard TemplateTag.isPath(path) else {
            report(field, "“\(path)” is not a path; write members joined by dots, without braces")
            return nil
        }
        checkPath(parent.map { "\($0).\(path)" } ?? path, shapes, line: field.line, key: field.path)
        return path
    }

    /// Reports a path that no example has.
    func checkPath(_ path: String, _ shapes: [EventShape], line: Int, key: String) {
        guard !shapes.isEmpty, !shapes.contains(where: { $0.paths.contains(path) }) else { return }
        if PersonalWords.isPersonal(path), !shapes.contains(where: { $0.paths.contains(PersonalWords.variable) }) {
            return report(line: line, key: key, PersonalWords.missingID)
        }
        let known = Set(shapes.flatMap(\.paths))
        let hint = NearestMatch.of(path, among: known).map { "; did you mean “\($0)”?" } ?? ""
        report(line: line, key: key, "no example of the event has “\(path)”\(hint)")
    }
}

import Primitives
import PushProtocol

extension RuleFileReader {
    /// The keys of an audience, at its own level or below `segment`.
    static let audienceKeys = ["audience", "topic", "tag", "devices", "hold-out"]

    /// Reads `audience`, `topic` or `tag` of a rule's recipients, with its options.
    func audience(_ field: Field, _ shapes: [EventShape], keys: [String]) -> (
        selector: Rule.AudienceSelector, options: Rule.AudienceOptions
    )? {
        guard let table = table(field, keys: keys) else { return nil }
        let kinds = ["audience", "topic", "tag"].filter { table[$0] != nil }
        guard kinds.count == 1 else {
            report(field, "needs exactly one of “audience: everyone”, “topic” and “tag”")
            return nil
        }
        guard let selector = audienceSelector(table, shapes) else { return nil }
        return (
            selector,
            Rule.AudienceOptions(
                devices: table["devices"].flatMap { deviceFilter($0) },
                rate: table["rate"].flatMap { number($0, 1...Audience.maximumRate) },
                holdOut: table["hold-out"].flatMap { percent($0) })
        )
    }

    func percent(_ field: Field) -> Int? {
        guard let text = text(field) else { return nil }
        guard text.hasSuffix("%"), let number = Int(text.dropLast()), Audience.holdOuts.contains(number) else {
            report(field, "expected a share from 1% to 99%, such as 10%")
            return nil
        }
        return number
    }

    private func deviceFilter(_ field: Field) -> Rule.DeviceFilterTemplate? {
        let keys = ["platforms", "languages", "zones", "app-version", "seen-within", "not-seen-for"]
        guard let table = table(field, keys: keys) else { return nil }
        var filter = DeviceFilter(
            platform: table["platforms"].flatMap(oneOrMore)?.compactMap { choice($0) },
            locale: table["languages"].flatMap(oneOrMore)?.compactMap { languageRange($0) },
            timeZone: table["zones"].flatMap(oneOrMore)?.compactMap { zoneName($0) })
        filter.appVersion = table["app-version"].flatMap { versions($0) }
        return Rule.DeviceFilterTemplate(
            filter: filter, seenWithin: table["seen-within"].flatMap { duration($0) },
            notSeenFor: table["not-seen-for"].flatMap { duration($0) })
    }

    private func languageRange(_ field: Field) -> String? {
        guard let name = text(field) else { return nil }
        if Language(name) != nil { return name }
        report(field, "“\(name)” is not a language tag of BCP 47, such as de or pt-BR")
        return nil
    }

    private func zoneName(_ field: Field) -> String? {
        guard let name = text(field) else { return nil }
        if Zone(name: name) != nil { return name }
        report(field, "“\(name)” is not a zone of the tz database, such as Europe/Berlin or UTC")
        return nil
    }

    private func versions(_ field: Field) -> DeviceFilter.VersionRange? {
        guard let table = table(field, keys: ["from", "until"]) else { return nil }
        return DeviceFilter.VersionRange(
            from: table["from"].flatMap { version($0) }, until: table["until"].flatMap { version($0) })
    }

    private func version(_ field: Field) -> AppVersion? {
        guard let text = text(field) else { return nil }
        if let version = AppVersion(rawValue: text) { return version }
        report(field, "“\(text)” is not a version such as 4.2 or 4.2.1; put it in quotes")
        return nil
    }

    /// Reports keys that a rule with a segment cannot have.
    func checkSegment(_ rule: Rule, _ field: Field) {
        guard rule.segment != nil else { return }
        if rule.how.badge != nil, rule.isPersonal { report(field, PersonalWords.missingID) }
        if rule.visibility == .momentary || rule.how.kind == .liveActivity {
            report(field, "“as: \(rule.how.kind.rawValue)” needs named users or a group: a segment is resolved later")
        }
    }
}

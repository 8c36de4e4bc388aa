import Primitives
import PushProtocol
import Yams

// MARK: - zone, language, types, caps, clear-read, hold-out, daily-promise

extension RuleFileReader {
    /// Reads the settings that apply to all rules of a file.
    func defaults(_ table: [String: Field]) -> AppDefaults {
        let types = table["types"].map(self.types) ?? [:]
        return AppDefaults(
            zone: table["zone"].flatMap { zone($0) } ?? .utc,
            language: table["language"].flatMap { language($0) } ?? .english, types: types,
            caps: table["caps"].map(caps) ?? [:], clearsRead: table["clear-read"].flatMap(flag) ?? false,
            holdOut: table["hold-out"].flatMap { holdOut($0, types: types) },
            dailyPromise: table["daily-promise"].flatMap { number($0, 1...100) })
    }

    private func language(_ field: Field) -> Language? {
        guard let name = text(field) else { return nil }
        guard let language = Language(name) else {
            report(field, "“\(name)” is not a language tag of BCP 47, such as en or pt-BR")
            return nil
        }
        return language
    }

    private func zone(_ field: Field) -> Zone? {
        guard let name = text(field) else { return nil }
        guard let zone = Zone(name: name) else {
            report(field, "“\(name)” is not a zone of the tz database, such as Europe/Berlin or UTC")
            return nil
        }
        return zone
    }

    private func types(_ field: Field) -> [String: PreferenceType] {
        var types: [String: PreferenceType] = [:]
        for (name, value) in members(field) ?? [] where isName(name, value) {
            guard let table = table(value, keys: ["about", "default", "critical"], required: ["about"]) else {
                continue
            }
            let type = PreferenceType(
                about: table["about"].flatMap { text($0) } ?? "", isOn: table["default"].flatMap(onOrOff) ?? true,
                isCritical: table["critical"].flatMap(flag) ?? false)
            if type.isCritical, !type.isOn { report(value, "a critical type is always on; remove “default: off”") }
            types[name] = type
        }
        return types
    }

    private func caps(_ field: Field) -> [String: Cap] {
        var caps: [String: Cap] = [:]
        for (name, value) in members(field) ?? [] where isName(name, value) {
            let keys = ["at-most", "within"]
            guard let table = table(value, keys: keys, required: keys), let limit = table["at-most"].flatMap(limit),
                let window = table["within"].flatMap(duration)
            else { continue }
            caps[name] = Cap(limit: limit, window: window)
        }
        return caps
    }

    private func limit(_ field: Field) -> Int? {
        guard let value = scalar(field) else { return nil }
        guard case .int(let limit) = value, (1...Int64(Cap.highestLimit)).contains(limit) else {
            report(field, "expected a whole number from 1 to \(Cap.highestLimit)")
            return nil
        }
        return Int(limit)
    }

    func isName(_ name: String, _ field: Field) -> Bool {
        if TemplateTag.isPath(name), !name.contains(".") { return true }
        report(field, "a name has only letters, digits, “_” and “-”")
        return false
    }

    /// Reads `on` or `off`. Tools for YAML 1.1 write these as `true` and `false`.
    private func onOrOff(_ field: Field) -> Bool? {
        enum Word: String, CaseIterable { case on, off }
        if case .scalar(let scalar) = field.node, case .bool(let flag) = ScalarValue.json(scalar) { return flag }
        let word: Word? = choice(field)
        return word.map { $0 == .on }
    }
}

// MARK: - policy

extension RuleFileReader {
    static let policyKeys = [
        "type", "mutes", "presence", "caps", "surplus", "quiet-hours", "hold-for", "inbox", "item", "schedule",
        "digest",
        "dedupe", "report",
    ]

    /// - Parameter personal: the shapes with the variable `recipient`, for the values that a digest keeps.
    func policy(
        _ field: Field, _ shapes: [EventShape], _ personal: [EventShape], _ defaults: AppDefaults
    ) -> Rule.Policy? {
        guard let table = table(field, keys: RuleFileReader.policyKeys) else { return nil }
        var policy = Rule.Policy()
        policy.type = table["type"].flatMap { known($0, in: defaults.types.keys, "types") }
        policy.mutes = table["mutes"].flatMap(oneOrMore)?.compactMap { template($0, shapes) } ?? []
        policy.presence = table["presence"].flatMap { choice($0) } ?? .ignored
        policy.caps = table["caps"].flatMap(oneOrMore)?.compactMap { known($0, in: defaults.caps.keys, "caps") } ?? []
        policy.overflow = table["surplus"].flatMap { choice($0) } ?? .inbox
        policy.quietHours = table["quiet-hours"].flatMap { choice($0) } ?? .hold
        policy.holdFor = table["hold-for"].flatMap(duration) ?? Rule.Policy.defaultHold
        policy.inbox = table["inbox"].flatMap(flag) ?? true
        policy.item = table["item"].flatMap { template($0, shapes) }
        policy.schedule = table["schedule"].flatMap { schedule($0, shapes, isSummedUp: table["digest"] != nil) }
        policy.digest = table["digest"].flatMap { digest($0, shapes, personal) }
        policy.dedupe = table["dedupe"].flatMap { dedupe($0, shapes) }
        policy.isReported = table["report"].flatMap(flag) ?? false
        checkSense(policy, table, defaults)
        checkGathering(policy, table)
        return policy
    }

    /// Reports keys of a policy that contradict each other.
    private func checkSense(_ policy: Rule.Policy, _ table: [String: Field], _ defaults: AppDefaults) {
        if let overflow = table["surplus"], policy.caps.isEmpty {
            report(overflow, "“surplus” needs “caps”")
        }
        if let inbox = table["inbox"], !policy.inbox {
            let losing = policy.caps.isEmpty ? nil : "surplus"
            if losing != nil, policy.overflow == .inbox {
                report(inbox, "notifications over a cap would be lost; use “inbox: true” or “surplus: hold”")
            }
            if policy.quietHours == .inbox {
                report(inbox, "notifications in quiet hours would be lost; use “hold” or “silent”")
            }
        }
        guard let type = policy.type, defaults.types[type]?.isCritical == true else { return }
        for key in ["mutes", "presence", "caps", "quiet-hours", "digest"] {
            if let field = table[key] {
                report(field, "“\(type)” is critical, so this key does not apply")
            }
        }
    }

    private func known(_ field: Field, in names: some Collection<String>, _ place: String) -> String? {
        guard let name = text(field) else { return nil }
        if names.contains(name) { return name }
        let hint = NearestMatch.of(name, among: names).map { "did you mean “\($0)”?" } ?? "describe it there"
        report(field, "there is no “\(name)” under “\(place)”; \(hint)")
        return nil
    }
}

import PushProtocol
import Yams

// MARK: - schedule, dedupe, digest

extension RuleFileReader {
    func schedule(_ field: Field, _ shapes: [EventShape], isSummedUp: Bool) -> Schedule? {
        guard let table = table(field, keys: ["at", "before", "after", "time"], required: ["at"]),
            let at = table["at"].flatMap({ path($0, shapes) })
        else { return nil }
        if let after = table["after"], table["before"] != nil {
            report(after, "set only one of “before” and “after”")
        }
        var offset = Duration.zero
        if let before = table["before"].flatMap({ window($0, longest: Schedule.longest) }) { offset = .zero - before }
        if let after = table["after"].flatMap({ window($0, longest: Schedule.longest) }) { offset = after }
        return Schedule(
            at: at, offset: offset,
            time: table["time"].flatMap { localTime($0) } ?? (isSummedUp ? .midnight : Schedule.usualTime))
    }

    func dedupe(_ field: Field, _ shapes: [EventShape]) -> Rule.Policy.Dedupe? {
        guard let table = table(field, keys: ["key", "within"], required: ["key", "within"]),
            let key = table["key"].flatMap({ template($0, shapes) }),
            let within = table["within"].flatMap({ window($0, longest: Rule.Policy.Dedupe.longest) })
        else { return nil }
        return Rule.Policy.Dedupe(key: key, within: within)
    }

    func digest(_ field: Field, _ shapes: [EventShape], _ personal: [EventShape]) -> Digest? {
        let keys = ["bucket", "at", "days", "month-days", "after", "count", "remains", "keep", "order", "say"]
        guard let table = table(field, keys: keys, required: ["say"]) else { return nil }
        let kept = table["keep"].flatMap { keep($0, personal) } ?? []
        let close: Digest.Close
        switch (table["at"], table["after"]) {
        case (let at?, nil):
            guard let time = localTime(at) else { return nil }
            close = .at(time, days: digestDays(table))
        case (nil, let after?):
            guard let window = window(after, longest: Digest.longestWindow) else { return nil }
            close = .after(window)
        case (nil, nil), (_?, _?):
            report(field, "a digest needs either “at”, a local time, or “after”, a delay after the first item")
            return nil
        }
        var digest = Digest(close: close, keep: kept, say: Rule.MessageTemplate())
        digest.bucket = table["bucket"].flatMap { template($0, shapes) }
        digest.count = table["count"].flatMap { number($0, 2...Digest.highestCount) }
        digest.remains = table["remains"].flatMap { choice($0) } ?? .never
        digest.order = table["order"].flatMap { order($0, kept) }
        digest.say =
            table["say"].flatMap { messageTemplate($0, [RuleFileReader.summaryShape(kept)]) } ?? Rule.MessageTemplate()
        check(digest, table)
        return digest
    }

    private func check(_ digest: Digest, _ table: [String: Field]) {
        if let say = table["say"], digest.say.title == nil, digest.say.body == nil {
            report(say, "a summary needs a title or a body")
        }
        if case .at = digest.close, let count = table["count"] {
            report(count, "“count” needs “after”: a digest with “at” is sent only at that time")
        }
        for key in ["days", "month-days"] {
            if case .after = digest.close, let days = table[key] { report(days, "“\(key)” needs “at”, a local time") }
        }
        if case .after = digest.close, digest.remains == .told, let remains = table["remains"] {
            report(remains, "“remains: told” needs “at”: with “after”, the digest would repeat without end")
        }
    }

    /// Reads `days` or `month-days`; every day without either.
    private func digestDays(_ table: [String: Field]) -> DigestDays {
        if let days = table["days"], table["month-days"] != nil {
            report(days, "set only one of “days” and “month-days”")
        }
        if let days = table["days"].flatMap(oneOrMore) {
            return .weekdays(Set(days.compactMap { choice($0) as Weekday? }))
        }
        if let days = table["month-days"].flatMap(oneOrMore) {
            return .monthDays(Set(days.compactMap { number($0, 1...31) }))
        }
        return .every
    }

    private func order(_ field: Field, _ kept: [DataTemplate.Member]) -> String? {
        guard let name = text(field) else { return nil }
        guard kept.contains(where: { $0.name == name }) else {
            report(field, "“keep” has no “\(name)” to order by")
            return nil
        }
        return name
    }

    private func keep(_ field: Field, _ shapes: [EventShape]) -> [DataTemplate.Member]? {
        members(field)?.compactMap { name, value in
            guard TemplateTag.isPath(name), !name.contains(".") else {
                report(value, "a name has only letters, digits, “_” and “-”")
                return nil
            }
            return dataTemplate(value, shapes).map { DataTemplate.Member(name: name, value: $0) }
        }
    }

    /// Returns the variables of a summary.
    private static func summaryShape(_ kept: [DataTemplate.Member]) -> EventShape {
        var shape = EventShape(examples: [])
        shape.paths = ["count", "one", "more", "items", "first", "last", "sum"]
        for member in kept {
            for list in ["items", "first", "last", "sum"] { shape.paths.insert("\(list).\(member.name)") }
        }
        return shape
    }

    /// Reports contradictions between `digest` and other keys.
    func checkGathering(_ policy: Rule.Policy, _ table: [String: Field]) {
        if policy.overflow == .digest, policy.digest == nil, let overflow = table["surplus"] {
            report(overflow, "“surplus: digest” needs a “digest”")
        }
        guard policy.digestsAll else { return }
        for key in ["mutes", "presence", "dedupe"] {
            if let field = table[key] {
                report(field, "a “digest” excludes “mutes”, “presence” and “dedupe”: its summary covers many items")
            }
        }
        if policy.overflow == .hold, let overflow = table["surplus"] {
            report(overflow, "a “digest” excludes “surplus: hold”; use “surplus: inbox”")
        }
    }

    func localTime(_ field: Field) -> LocalTime? {
        guard let text = text(field) else { return nil }
        guard let time = LocalTime(text) else {
            report(field, "“\(text)” is not a time of day such as 09:00")
            return nil
        }
        return time
    }

    /// Reads a duration of at most `longest`: whole days, or whole hours below a day.
    func window(_ field: Field, longest: Duration) -> Duration? {
        guard let window = duration(field) else { return nil }
        guard window <= longest else {
            let hours = longest.components.seconds / 3600
            report(field, hours < 24 ? "at most \(hours)h" : "at most \(hours / 24)d")
            return nil
        }
        return window
    }

    func number(_ field: Field, _ range: ClosedRange<Int>) -> Int? {
        guard let value = scalar(field) else { return nil }
        guard case .int(let number) = value, let number = Int(exactly: number), range.contains(number) else {
            report(field, "expected a whole number from \(range.lowerBound) to \(range.upperBound)")
            return nil
        }
        return number
    }
}

import PushProtocol
import Yams

// MARK: - say, for kinds that show no notification

extension RuleFileReader {
    /// What stands beside `aps`, and whether somebody forgot that `aps` is the kind's.
    func payload(_ field: Field, _ shapes: [EventShape]) -> [DataTemplate.Member]? {
        guard case .object(let members)? = dataTemplate(field, shapes) else {
            report(field, "expected keys with values: what stands beside “aps”")
            return nil
        }
        if members.contains(where: { $0.name == "aps" }) {
            report(field, "“aps” follows from “as”; what stands here stands beside it")
        }
        return members
    }

    func activity(_ field: Field, _ shapes: [EventShape]) -> Activity? {
        let keys = [
            "event", "content-state", "attributes-type", "attributes", "stale-date", "dismissal-date",
            "relevance-score",
            "input-push-token", "input-push-channel",
        ]
        guard let table = table(field, keys: keys, required: ["event"]),
            let event: Activity.Event = table["event"].flatMap({ choice($0) })
        else { return nil }
        checkActivity(event, field, table)
        return Activity(
            event: event, state: table["content-state"].flatMap { object($0, shapes) },
            attributesType: table["attributes-type"].flatMap { text($0) },
            attributes: table["attributes"].flatMap { object($0, shapes) },
            staleDate: table["stale-date"].flatMap { moment($0, shapes) },
            dismissalDate: table["dismissal-date"].flatMap { moment($0, shapes) },
            relevance: table["relevance-score"].flatMap { relevance($0, shapes) },
            asksForToken: table["input-push-token"].flatMap { flag($0) } ?? false,
            channel: table["input-push-channel"].flatMap { template($0, shapes) })
    }

    /// What each event must have, and what it cannot (`push-protocols` A.7).
    private func checkActivity(_ event: Activity.Event, _ field: Field, _ table: [String: Field]) {
        let (needed, alien): ([String], [String]) =
            switch event {
            case .start: (["content-state", "attributes-type", "attributes"], ["dismissal-date"])
            case .update:
                (
                    ["content-state"],
                    ["attributes-type", "attributes", "input-push-token", "input-push-channel", "dismissal-date"]
                )
            case .end: ([], ["attributes-type", "attributes", "input-push-token", "input-push-channel", "stale-date"])
            }
        for key in needed where table[key] == nil { report(field, "“event: \(event.rawValue)” needs “\(key)”") }
        for key in alien {
            if let value = table[key] { report(value, "“event: \(event.rawValue)” has no “\(key)”") }
        }
        if table["input-push-token"] != nil, let channel = table["input-push-channel"] {
            report(channel, "an activity hears of changes by a token of its own or by a channel, not both")
        }
    }

    /// An object, written out or one variable that is one.
    private func object(_ field: Field, _ shapes: [EventShape]) -> DataTemplate? {
        switch dataTemplate(field, shapes) {
        case .object(let members)?: return .object(members)
        case .value(let path, let filters)?: return .value(path: path, filters: filters)
        case .constant?, .text?, .array?:
            report(field, "expected keys with values, as the app's own type has them, or one variable in quotes")
            return nil
        case nil: return nil
        }
    }

    private func relevance(_ field: Field, _ shapes: [EventShape]) -> DataTemplate? {
        switch dataTemplate(field, shapes) {
        case .value(let path, let filters)?: return .value(path: path, filters: filters)
        case .constant(.int(let number))?: return .constant(.int(number))
        case .constant(.double(let number))?: return .constant(.double(number))
        case .constant?, .text?, .array?, .object?:
            report(field, "a relevance score is a number, or one variable in quotes")
            return nil
        case nil: return nil
        }
    }

    /// `{ at: game.ends_at, after: 5m }`; without `at` it is counted from when the event happened.
    private func moment(_ field: Field, _ shapes: [EventShape]) -> Activity.Moment? {
        guard let table = table(field, keys: ["at", "before", "after"]) else { return nil }
        var moment = Activity.Moment(at: table["at"].flatMap { path($0, shapes) })
        if table.isEmpty { report(field, "it is “at” a time of the event, or some time “after” the event") }
        if let after = table["after"], table["before"] != nil {
            report(after, "it is either before or after that time")
        }
        if let before = table["before"].flatMap({ duration($0) }) { moment.offset = .zero - before }
        if let after = table["after"].flatMap({ duration($0) }) { moment.offset = after }
        return moment
    }
}

// MARK: - to

extension RuleFileReader {
    /// Whoever follows something at a provider.
    func following(_ field: Field, _ shapes: [EventShape]) -> Rule.Following? {
        let words = Rule.Following.What.allCases
        guard let table = table(field, keys: words.map(\.rawValue) + ["environment"]) else { return nil }
        let named = words.filter { table[$0.rawValue] != nil }
        guard let what = named.first, named.count == 1, let value = table[what.rawValue] else {
            report(field, "it is one of \(words.map(\.rawValue).joined(separator: ", "))")
            return nil
        }
        guard let name = template(value, shapes) else { return nil }
        var following = Rule.Following(what: what, name: name)
        if let environment = table["environment"] {
            if what != .channel { report(environment, "FCM has one environment; channels have two") }
            following.environment = choice(environment) ?? .production
        }
        return following
    }
}

// MARK: - What does not fit together

extension RuleFileReader {
    /// Holds what a rule says, and to whom, against its kind.
    func checkKind(_ rule: Rule, _ field: Field) {
        checkPushType(rule)
        checkWords(rule, field)
        checkFollowing(rule, field)
        let kind = rule.how.kind
        if rule.say.payload != nil, !kind.hasPayload {
            reportSay(rule, "payload", "“as: \(kind.rawValue)” has no payload of its own; “data” is for the app")
        }
        if rule.say.activity != nil, kind != .liveActivity {
            reportSay(rule, "live-activity", "what is said to a Live Activity needs “as: live-activity” under “how”")
        }
        if rule.how.scope != nil, kind.pushType == nil {
            report(
                line: line(of: "\(field.path).how.scope"), key: "\(field.path).how.scope",
                "a person has one token for what “as: \(kind.rawValue)” shows on a device: there is no “scope”")
        }
        switch kind {
        case .liveActivity: checkLiveActivity(rule, field)
        case .fileProvider:
            checkPayload(rule, field, has: ["container-identifier", "domain"])
        case .mdm:
            checkPayload(rule, field, has: ["mdm"])
            if let payload = rule.say.payload, payload.count > 1 {
                reportSay(rule, "payload", "a device is woken for its management by “mdm” alone")
            }
        case .alert, .silent, .badgeOnly, .voip, .pushToTalk, .location, .complication, .widgets, .controls: break
        }
    }

    private func reportSay(_ rule: Rule, _ key: String, _ problem: String) {
        let key = "rules.\(rule.name).say.\(key)"
        report(line: line(of: key), key: key, problem)
    }

    /// Two words for one thing would come to differ.
    private func checkPushType(_ rule: Rule) {
        for name in rule.how.apns?.headers?.keys.sorted() ?? [] where name.lowercased() == "apns-push-type" {
            let key = "rules.\(rule.name).how.apns.headers.\(name)"
            report(line: line(of: key), key: key, "the push type follows from “as” under “how”: “as: voip”")
        }
    }

    /// Words, and what belongs to words, where nothing is shown or it is shown otherwise.
    private func checkWords(_ rule: Rule, _ field: Field) {
        let kind = rule.how.kind
        guard kind.pushType != nil else { return }
        let words: [(String, Bool)] = [
            ("title", rule.say.title != nil), ("subtitle", rule.say.subtitle != nil), ("body", rule.say.body != nil),
            ("image", rule.say.image != nil), ("data", rule.say.data != nil), ("deep-link", rule.say.deepLink != nil),
        ]
        let fitting: Set<String> =
            if kind == .liveActivity { ["title", "body"] } else if kind.isData { ["data", "deep-link"] } else { [] }
        for (word, isSaid) in words where isSaid && !fitting.contains(word) {
            reportSay(rule, word, "“as: \(kind.rawValue)” has no “\(word)”")
        }
        let options: [(String, Bool)] = [
            ("sound", rule.how.sound != nil && kind != .liveActivity), ("category", rule.how.category != nil),
            ("thread", rule.how.thread != nil), ("badge", rule.how.badge != nil || rule.how.countsUnread),
            ("interruption-level", rule.how.interruptionLevel != nil),
        ]
        for (word, isSaid) in options where isSaid {
            let key = "\(field.path).how.\(word)"
            report(line: line(of: key), key: key, "“as: \(kind.rawValue)” has no “\(word)”")
        }
    }

    private func checkLiveActivity(_ rule: Rule, _ field: Field) {
        guard let activity = rule.say.activity else {
            report(field, "“as: live-activity” needs “live-activity” under “say”")
            return
        }
        let speaks = rule.say.title != nil || rule.say.body != nil
        if activity.event == .start, !speaks {
            report(field, "a Live Activity starts with an alert: it needs a title or a body under “say”")
        }
        if rule.how.sound != nil, !speaks {
            report(field, "the sound of a Live Activity is its alert's: it needs a title or a body under “say”")
        }
    }

    private func checkPayload(_ rule: Rule, _ field: Field, has names: [String]) {
        let given = Set(rule.say.payload?.map(\.name) ?? [])
        for name in names where !given.contains(name) {
            report(field, "“as: \(rule.how.kind.rawValue)” needs “\(name)” in the “payload” under “say”")
        }
    }

    private func checkFollowing(_ rule: Rule, _ field: Field) {
        guard let following = rule.following else { return }
        let kind = rule.how.kind
        switch following.what {
        case .channel:
            guard kind == .liveActivity, rule.say.activity?.event != .start else {
                report(
                    field,
                    "a broadcast channel is for “as: live-activity” with “event: update” or “end”: it starts none")
                return
            }
        case .topic, .condition:
            if kind != .alert, kind != .silent {
                report(field, "FCM's topics are for “as: alert” and “as: silent”")
            }
        }
        if rule.how.scope != nil || rule.how.countsUnread {
            report(
                field,
                "who follows something at a provider is not known here: there is no “scope”, and nothing “unread”")
        }
    }

    /// What a person may want of what cannot wait.
    func checkMomentary(_ rule: Rule, _ field: Field) {
        let fitting = ["type", "mutes", "presence", "caps", "quiet-hours", "dedupe", "report"]
        for (name, value) in members(field) ?? [] where !fitting.contains(name) {
            report(value, "“as: \(rule.how.kind.rawValue)” is now or never: it is not held, summed up or kept")
        }
        if rule.policy.presence == .thread {
            let key = "\(field.path).presence"
            report(line: line(of: key), key: key, "“as: \(rule.how.kind.rawValue)” has no thread to look at")
        }
        switch rule.policy.quietHours {
        case .bypass, .inbox: break
        case .hold, .silent:
            let key = "\(field.path).quiet-hours"
            report(line: line(of: key), key: key, "what is now or never is told in quiet hours (bypass) or not (inbox)")
        }
    }
}

import PushProtocol
import Yams

// MARK: - say, for kinds that show no notification

extension RuleFileReader {
    /// Reads `payload`: the members beside `aps`. Reports an `aps` member, because the kind sets `aps`.
    func payload(_ field: Field, _ shapes: [EventShape]) -> [DataTemplate.Member]? {
        guard case .object(let members)? = dataTemplate(field, shapes) else {
            report(field, "expected keys with values: the members beside “aps”")
            return nil
        }
        if members.contains(where: { $0.name == "aps" }) {
            report(field, "“as” sets “aps”; the payload has only the members beside it")
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

    /// Checks the keys of each event (`Shared/Providers/ProviderFacts.md`, “The `aps` dictionary”).
    private func checkActivity(_ event: Activity.Event, _ field: Field, _ table: [String: Field]) {
        let (needed, forbidden): ([String], [String]) =
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
        for key in forbidden {
            if let value = table[key] { report(value, "“event: \(event.rawValue)” has no “\(key)”") }
        }
        if table["input-push-token"] != nil, let channel = table["input-push-channel"] {
            report(channel, "set only one of “input-push-token” and “input-push-channel”")
        }
    }

    /// Reads an object, or one variable whose value is an object.
    private func object(_ field: Field, _ shapes: [EventShape]) -> DataTemplate? {
        switch dataTemplate(field, shapes) {
        case .object(let members)?: return .object(members)
        case .value(let path, let filters)?: return .value(path: path, filters: filters)
        case .constant?, .text?, .array?:
            report(field, "expected keys with values, or one variable in quotes")
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

    /// Reads `{ at: game.ends_at, after: 5m }`. Without `at`, the time of the event counts.
    private func moment(_ field: Field, _ shapes: [EventShape]) -> Activity.Moment? {
        guard let table = table(field, keys: ["at", "before", "after"]) else { return nil }
        var moment = Activity.Moment(at: table["at"].flatMap { path($0, shapes) })
        if table.isEmpty { report(field, "set “at”, the path of a time, or “after”, a delay after the event") }
        if let after = table["after"], table["before"] != nil {
            report(after, "set only one of “before” and “after”")
        }
        if let before = table["before"].flatMap({ duration($0) }) { moment.offset = .zero - before }
        if let after = table["after"].flatMap({ duration($0) }) { moment.offset = after }
        return moment
    }
}

// MARK: - to

extension RuleFileReader {
    /// Reads `channel`, `fcm-topic` or `fcm-condition`, whose subscribers only the provider knows.
    func following(_ field: Field, _ shapes: [EventShape]) -> Rule.Following? {
        let kinds = Rule.Following.DestinationKind.allCases
        guard let table = table(field, keys: kinds.map(\.rawValue) + ["environment"]) else { return nil }
        let named = kinds.filter { table[$0.rawValue] != nil }
        guard let kind = named.first, named.count == 1, let value = table[kind.rawValue] else {
            report(field, "set exactly one of \(kinds.map(\.rawValue).joined(separator: ", "))")
            return nil
        }
        guard let name = template(value, shapes) else { return nil }
        var following = Rule.Following(kind: kind, name: name)
        if let environment = table["environment"] {
            if kind != .channel { report(environment, "only a “channel” takes an “environment”") }
            following.environment = choice(environment) ?? .production
        }
        return following
    }
}

// MARK: - Checks across keys

extension RuleFileReader {
    /// Checks the rule's `say`, `how` and `to` against its kind.
    func checkKind(_ rule: Rule, _ field: Field) {
        checkPushType(rule)
        checkTexts(rule, field)
        checkFollowing(rule, field)
        let kind = rule.how.kind
        if rule.say.payload != nil, !kind.hasPayload {
            reportSay(rule, "payload", "“as: \(kind.rawValue)” takes no “payload”; use “data”")
        }
        if rule.say.activity != nil, kind != .liveActivity {
            reportSay(rule, "live-activity", "“live-activity” needs “as: live-activity” under “how”")
        }
        if rule.how.scope != nil, kind.pushType == nil {
            report(
                line: line(of: "\(field.path).how.scope"), key: "\(field.path).how.scope",
                "“as: \(kind.rawValue)” takes no “scope”: a device has one token for it")
        }
        switch kind {
        case .liveActivity: checkLiveActivity(rule, field)
        case .fileProvider:
            checkPayload(rule, field, has: ["container-identifier", "domain"])
        case .mdm:
            checkPayload(rule, field, has: ["mdm"])
            if let payload = rule.say.payload, payload.count > 1 {
                reportSay(rule, "payload", "an MDM payload has only “mdm”")
            }
        case .alert, .silent, .badgeOnly, .voip, .pushToTalk, .location, .complication, .widgets, .controls: break
        }
    }

    private func reportSay(_ rule: Rule, _ key: String, _ problem: String) {
        let key = "rules.\(rule.name).say.\(key)"
        report(line: line(of: key), key: key, problem)
    }

    /// Reports an `apns-push-type` header, because `as` sets it.
    private func checkPushType(_ rule: Rule) {
        for name in rule.how.apns?.headers?.keys.sorted() ?? [] where name.lowercased() == "apns-push-type" {
            let key = "rules.\(rule.name).how.apns.headers.\(name)"
            report(line: line(of: key), key: key, "set the push type with “as” under “how”")
        }
    }

    /// Reports texts and display options that the kind does not support.
    private func checkTexts(_ rule: Rule, _ field: Field) {
        let kind = rule.how.kind
        guard kind.pushType != nil else { return }
        let words: [(String, Bool)] = [
            ("title", rule.say.title != nil), ("subtitle", rule.say.subtitle != nil), ("body", rule.say.body != nil),
            ("image", rule.say.image != nil), ("data", rule.say.data != nil), ("deep-link", rule.say.deepLink != nil),
        ]
        let fitting: Set<String> =
            if kind == .liveActivity { ["title", "body"] } else if kind.isData { ["data", "deep-link"] } else { [] }
        for (word, isSet) in words where isSet && !fitting.contains(word) {
            reportSay(rule, word, "“as: \(kind.rawValue)” has no “\(word)”")
        }
        let options: [(String, Bool)] = [
            ("sound", rule.how.sound != nil && kind != .liveActivity), ("category", rule.how.category != nil),
            ("thread", rule.how.thread != nil), ("badge", rule.how.badge != nil || rule.how.countsUnread),
            ("interruption-level", rule.how.interruptionLevel != nil),
        ]
        for (word, isSet) in options where isSet {
            let key = "\(field.path).how.\(word)"
            report(line: line(of: key), key: key, "“as: \(kind.rawValue)” has no “\(word)”")
        }
    }

    private func checkLiveActivity(_ rule: Rule, _ field: Field) {
        guard let activity = rule.say.activity else {
            report(field, "“as: live-activity” needs “live-activity” under “say”")
            return
        }
        let hasText = rule.say.title != nil || rule.say.body != nil
        if activity.event == .start, !hasText {
            report(field, "a Live Activity starts with an alert: it needs a title or a body under “say”")
        }
        if rule.how.sound != nil, !hasText {
            report(field, "the sound of a Live Activity belongs to its alert: it needs a title or a body under “say”")
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
        switch following.kind {
        case .channel:
            guard kind == .liveActivity, rule.say.activity?.event != .start else {
                report(
                    field,
                    "a broadcast channel takes only “as: live-activity” with “event: update” or “event: end”")
                return
            }
        case .topic, .condition:
            if kind != .alert, kind != .silent {
                report(field, "FCM topics take only “as: alert” and “as: silent”")
            }
        }
        if rule.how.scope != nil || rule.how.countsUnread {
            report(
                field,
                "only the provider knows the recipients: “scope” and “badge: unread” are not available")
        }
    }

    /// Checks the policy of a kind that is delivered immediately or not at all.
    func checkMomentary(_ rule: Rule, _ field: Field) {
        let fitting = ["type", "mutes", "presence", "caps", "quiet-hours", "dedupe", "report"]
        for (name, value) in members(field) ?? [] where !fitting.contains(name) {
            report(value, "“as: \(rule.how.kind.rawValue)” is sent at once or not at all, so this key does not apply")
        }
        if rule.policy.presence == .thread {
            let key = "\(field.path).presence"
            report(line: line(of: key), key: key, "“as: \(rule.how.kind.rawValue)” has no thread; use “presence: app”")
        }
        switch rule.policy.quietHours {
        case .bypass, .inbox: break
        case .hold, .silent:
            let key = "\(field.path).quiet-hours"
            report(line: line(of: key), key: key, "a kind that is sent at once takes only bypass or inbox")
        }
    }
}

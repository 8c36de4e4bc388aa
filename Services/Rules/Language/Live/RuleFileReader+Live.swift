import PushProtocol
import Yams

/// The rules and signals that the entries under `live` become.
struct LiveRules {
    var rules: [Rule] = []
    /// The events that cancel the waiting notifications of an item.
    var done: [SignalSource] = []
}

extension RuleFileReader {
    static let liveKeys = [
        "about", "to", "item", "on", "type", "lane", "title", "body", "attributes-type", "attributes", "state",
        "relevance-score", "stale-after", "start", "update", "end", "ends-after", "channel", "otherwise",
    ]
    /// The time from the start, or from the last unpaced update, after which a surface ends, unless the entry sets it. iOS
    /// ends a Live Activity then.
    static let liveEnd = Duration.seconds(8 * 3600)
    static let longestPace = Duration.seconds(3600)

    /// Reads `live`. Each entry becomes ordinary rules, so that decisions, holds, recordings and `explain` need nothing
    /// new: `<name>-start`, `-update`, `-end` and `-timeout` for Live Activities, the same with `-message` for other
    /// platforms, the same with `-channel` for broadcast channels, and `-alert-1`, `-alert-2`, … for devices without the
    /// surface.
    func liveRules(_ field: Field, _ defaults: AppDefaults, besides rules: [Rule]) -> LiveRules {
        var live = LiveRules()
        var names = Set(rules.map(\.name))
        for (name, value) in members(field) ?? [] where isName(name, value) {
            guard let entry = liveEntry(name, value) else { continue }
            add(entry, defaults, to: &live)
        }
        for rule in live.rules where !names.insert(rule.name).inserted {
            let place = places["rules.\(rule.name)"] ?? field.path
            report(line: line(of: place), key: place, "a rule is named “\(rule.name)”; rename the rule or the entry")
        }
        return live
    }

    private func liveEntry(_ name: String, _ field: Field) -> LiveEntry? {
        guard
            let table = table(
                field, keys: Self.liveKeys, required: ["to", "item", "state", "start", "end"]),
            let item = table["item"].flatMap({ text($0) })
        else { return nil }
        let surfaces = table["on"].map(platforms) ?? [.apple]
        let entry = LiveEntry(
            name: name, field: field, table: table, surfaces: surfaces, item: item,
            channel: table["channel"].flatMap { channel($0, surfaces) })
        if surfaces.contains(.apple), table["attributes-type"] == nil {
            report(field, "“attributes-type” is missing: the name of the ActivityAttributes type in the app")
        }
        if !entry.messagePlatforms.isEmpty, table["title"] == nil {
            report(field, "“title” is missing: Android and the web show it with each state")
        }
        return table["to"].map(isOfKnownUsers) ?? true ? entry : nil
    }

    /// Reports recipients that rules do not know: their surface could not wait, and has no settings.
    private func isOfKnownUsers(_ to: Field) -> Bool {
        let words = to.node.mapping?.keys.compactMap { $0.scalar?.string } ?? []
        guard let kind = words.first(where: Self.audienceWords.contains) else { return true }
        report(to, "a live surface is for “users” or a “group”, not for a “\(kind)”")
        return false
    }

    private func channel(_ field: Field, _ surfaces: Set<DeviceFilter.Platform>) -> LiveEntry.Channel? {
        guard let table = table(field, keys: ["above", "environments"], required: ["above"]),
            let above = table["above"]
        else { return nil }
        guard surfaces.contains(.apple) else {
            report(field, "only the phones of “apple” follow a broadcast channel")
            return nil
        }
        guard let above = number(above, 0...1_000_000_000) else { return nil }
        var environments: Set<ProviderEnvironment> = []
        for field in table["environments"].map({ oneOrMore($0) ?? [] }) ?? [] {
            if let environment: ProviderEnvironment = choice(field) { environments.insert(environment) }
        }
        return LiveEntry.Channel(
            above: above, environments: table["environments"] == nil ? [.production] : environments)
    }

    private func platforms(_ field: Field) -> Set<DeviceFilter.Platform> {
        var platforms: Set<DeviceFilter.Platform> = []
        for field in oneOrMore(field) ?? [] {
            if let platform: DeviceFilter.Platform = choice(field) { platforms.insert(platform) }
        }
        return platforms
    }

    private static let audienceWords = Set(
        ["segment", "audience", "topic", "tag"] + Rule.Following.DestinationKind.allCases.map(\.rawValue))

    private func add(_ entry: LiveEntry, _ defaults: AppDefaults, to live: inout LiveRules) {
        let start = entry.table["start"].flatMap { moment(.start, $0, ["title", "body", "sound"]) }
        let end = entry.table["end"].flatMap { moment(.end, $0, ["title", "body", "dismiss-after"]) }
        let fields = entry.table["update"].map { oneOrMore($0) ?? [] } ?? []
        var updates: [LiveEntry.Moment] = []
        for (index, field) in fields.enumerated() {
            let suffix = index == 0 ? "" : "-\(index + 1)"
            if let update = moment(.update, field, ["title", "body", "every"], suffix: suffix) {
                updates.append(update)
            }
        }
        guard let start, let end, updates.count == fields.count else { return }
        for moment in [start] + updates + [end] {
            let name = "\(moment.step.rawValue)\(moment.suffix)"
            let pace = moment.table["every"].flatMap { window($0, longest: Self.longestPace) }
            for (node, suffix) in nodes(entry, moment) {
                guard var rule = rule(entry, node, "\(name)\(suffix)", at: moment.field, defaults, moment.step) else {
                    continue
                }
                useChannels(&rule, of: entry, moment.step, isBroadcast: suffix == Self.channelSuffix)
                if let pace { rule.policy.schedule = Schedule(offset: .zero, time: Schedule.usualTime, every: pace) }
                live.rules.append(rule)
            }
        }
        addTimeout(entry, after: [start] + updates.filter { $0.table["every"] == nil }, defaults, to: &live)
        addAlerts(entry, start, defaults, to: &live)
        if let done = done(entry, end) { live.done.append(done) }
    }

    /// Adds the rules that end a surface whose end never comes. The start and each unpaced update replace the waiting
    /// end. Paced updates do not: each would write two decisions more for each user.
    private func addTimeout(
        _ entry: LiveEntry, after signs: [LiveEntry.Moment], _ defaults: AppDefaults, to live: inout LiveRules
    ) {
        let field = entry.table["ends-after"] ?? entry.field
        guard let delay = endsAfter(entry) else { return }
        let end = LiveEntry.Moment(step: .end, field: field, table: [:])
        for (node, suffix) in nodes(entry, end, after: signs) {
            guard var rule = rule(entry, node, "timeout\(suffix)", at: field, defaults, .end) else { continue }
            useChannels(&rule, of: entry, .end, isBroadcast: suffix == Self.channelSuffix)
            rule.policy.schedule = Schedule(offset: delay, time: Schedule.usualTime)
            rule.surfaceDelay = delay
            if suffix == Self.channelSuffix { rule.channels?.role = .endsLater(delay) }
            live.rules.append(rule)
        }
    }

    private func endsAfter(_ entry: LiveEntry) -> Duration? {
        entry.table["ends-after"].map { window($0, longest: Schedule.longest) } ?? Self.liveEnd
    }

    private static let channelSuffix = "-channel"

    /// Sets what a rule of the step does with the channels of the entry.
    private func useChannels(
        _ rule: inout Rule, of entry: LiveEntry, _ step: LiveEntry.Moment.Step, isBroadcast: Bool
    ) {
        guard let channel = entry.channel, isBroadcast || step == .start && rule.how.kind == .liveActivity,
            let item = itemTemplate(entry, rule.when)
        else { return }
        let role: SurfaceChannelRole =
            switch step {
            case .start:
                .opens(
                    above: channel.above, environments: channel.environments,
                    endsAfter: endsAfter(entry) ?? Self.liveEnd)
            case .update: .updates
            case .end: .ends
            }
        rule.channels = SurfaceChannels(item: item, role: role)
    }

    private func itemTemplate(_ entry: LiveEntry, _ when: Rule.Condition) -> Template? {
        let key = "\(entry.field.path).item"
        let field = self.field(.word(entry.itemName), key, line: line(of: key))
        return template(field, when.events.compactMap { catalog[$0] })
    }

    private func addAlerts(
        _ entry: LiveEntry, _ start: LiveEntry.Moment, _ defaults: AppDefaults, to live: inout LiveRules
    ) {
        let keys = ["event", "data", "title", "subtitle", "body", "deep-link", "image", "sound", "interruption-level"]
        let starts = start.table["event"].flatMap { oneOrMore($0) }?.compactMap(\.node.scalar?.string) ?? []
        for (index, field) in (entry.table["otherwise"].flatMap { oneOrMore($0) } ?? []).enumerated() {
            guard let table = table(field, keys: keys, required: ["event"]) else { continue }
            let events = table["event"].flatMap { oneOrMore($0) }?.compactMap(\.node.scalar?.string) ?? []
            let node = entry.alertRule(table, isAtStart: !Set(events).isDisjoint(with: starts))
            if let rule = rule(entry, node, "alert-\(index + 1)", at: field, defaults, nil) { live.rules.append(rule) }
        }
    }

    /// The event of the end cancels updates and the end by time that wait for the item.
    private func done(_ entry: LiveEntry, _ end: LiveEntry.Moment) -> SignalSource? {
        guard let when = condition(end.field, end.table, catalog: catalog), let item = itemTemplate(entry, when) else {
            return nil
        }
        return SignalSource(place: end.field.path, when: when, thread: item, kind: .done)
    }

    private func moment(
        _ step: LiveEntry.Moment.Step, _ field: Field, _ keys: [String], suffix: String = ""
    ) -> LiveEntry.Moment? {
        guard let table = table(field, keys: ["event", "data", "to", "state"] + keys, required: ["event"]),
            table["to"].map(isOfKnownUsers) ?? true
        else { return nil }
        return LiveEntry.Moment(step: step, field: field, table: table, suffix: suffix)
    }

    private func nodes(
        _ entry: LiveEntry, _ moment: LiveEntry.Moment, after signs: [LiveEntry.Moment]? = nil
    ) -> [(Node, suffix: String)] {
        var nodes: [(Node, suffix: String)] = []
        if entry.surfaces.contains(.apple) { nodes.append((entry.activityRule(moment, after: signs), "")) }
        if entry.channel != nil, moment.step != .start {
            nodes.append((entry.activityRule(moment, after: signs, isBroadcast: true), Self.channelSuffix))
        }
        if !entry.messagePlatforms.isEmpty { nodes.append((entry.messageRule(moment, after: signs), "-message")) }
        return nodes
    }

    /// - Parameter step: the step of the surface; `nil` for an alert.
    private func rule(
        _ entry: LiveEntry, _ node: Node, _ part: String, at place: Field, _ defaults: AppDefaults,
        _ step: LiveEntry.Moment.Step?
    ) -> Rule? {
        let name = "\(entry.name)-\(part)"
        places["rules.\(name)"] = place.path
        let surface: Rule.Surface? =
            switch step {
            case .start: .started
            case .update: .shown
            case .end: .removed
            case nil: nil
            }
        return rule(
            field(node, "rules.\(name)", line: place.line), name: name, catalog: catalog, defaults: defaults,
            surface: surface)
    }
}

import PushProtocol
import Yams

/// An entry under `live`: a thing in progress, such as a delivery, that phones show as one surface.
struct LiveEntry {
    let name: String
    let field: Field
    let table: [String: Field]
    /// The platforms whose apps show the surface.
    let surfaces: Set<DeviceFilter.Platform>
    let item: String
    /// The use of broadcast channels; `nil`: none.
    let channel: Channel?

    /// The platforms that show the surface by data messages.
    var messagePlatforms: [DeviceFilter.Platform] {
        DeviceFilter.Platform.allCases.filter { $0 != .apple && surfaces.contains($0) }
    }

    /// The name of the item for decisions: no other rule waits for it.
    var itemName: String { LiveItem.name(of: item, in: name) }

    /// A start with more recipients than `above` uses a broadcast channel of each environment.
    struct Channel {
        let above: Int
        let environments: Set<ProviderEnvironment>
    }

    /// The events of one step of the thing.
    struct Moment {
        enum Step: String { case start, update, end }
        let step: Step
        let field: Field
        let table: [String: Field]
        /// Distinguishes several updates.
        var suffix = ""
    }
}

extension LiveEntry {
    /// The rule that sends a step to Live Activities.
    ///
    /// - Parameters:
    ///   - signs: the steps after which it waits for a sign of life; `nil`: it is sent at once.
    ///   - isBroadcast: whether it is sent to channels, and not to the tokens of users.
    func activityRule(_ moment: Moment, after signs: [Moment]? = nil, isBroadcast: Bool = false) -> Node {
        let step = moment.step
        var activity: [(String, Node?)] = [
            ("event", .word(step.rawValue)), ("content-state", state(moment)),
            ("relevance-score", table["relevance-score"]?.node),
        ]
        switch step {
        case .start:
            activity += [
                ("attributes-type", table["attributes-type"]?.node),
                ("attributes", table["attributes"]?.node ?? .keys([])), ("input-push-token", .plain("true")),
                ("stale-date", delay(table["stale-after"])),
            ]
        case .update: activity.append(("stale-date", delay(table["stale-after"])))
        case .end: activity.append(("dismissal-date", delay(moment.table["dismiss-after"])))
        }
        var say: [(String, Node?)] = [("live-activity", .keys(activity))]
        var how: [(String, Node?)] = [("as", .word("live-activity")), ("lane", table["lane"]?.node)]
        switch step {
        case .start:
            say += [("title", words("title", moment)), ("body", words("body", moment))]
            how.append(("sound", moment.table["sound"]?.node))
        case .update:
            // Updates of this priority do not count against the hourly budget of a Live Activity
            // (`Shared/Providers/ProviderFacts.md`, A.5).
            if moment.table["every"] != nil {
                how.append(("apns", .keys([("headers", .keys([("apns-priority", .word("5"))]))])))
            }
        case .end: break
        }
        if isBroadcast {
            how.append(("expires-after", .plain("\(SurfaceChannelRole.storage.components.seconds)s")))
        } else if step != .start {
            how.append(("scope", .word(item)))
        }
        return rule(moment, say: .keys(say), how: .keys(how), after: signs)
    }

    /// The rule that sends a step to the apps of other platforms. Their client code shows the surface.
    func messageRule(_ moment: Moment, after signs: [Moment]? = nil) -> Node {
        let data: [(String, Node?)] = [
            ("live", .word(name)), ("live_item", .word(item)), ("live_event", .word(moment.step.rawValue)),
            ("live_time", .word("{{optional(event.time)}}")), ("live_state", state(moment)),
            ("live_title", words("title", moment)), ("live_body", words("body", moment)),
        ]
        // A sleeping phone gets a paced update later.
        let priority = moment.table["every"] == nil ? "HIGH" : "NORMAL"
        let android = Node.keys([("android", .keys([("priority", .word(priority))]))])
        let how = Node.keys([
            ("as", .word("silent")), ("lane", table["lane"]?.node),
            ("platforms", .sequence(Node.Sequence(messagePlatforms.map { .word($0.rawValue) }))),
            ("fcm", .keys([("message", android)])),
        ])
        return rule(moment, say: .keys([("data", .keys(data))]), how: how, after: signs)
    }

    /// The rule of an alert for devices that do not show the surface.
    ///
    /// - Parameter isAtStart: whether it is about the start, when no device shows the surface yet.
    func alertRule(_ table: [String: Field], isAtStart: Bool) -> Node {
        var how: [(String, Node?)] = [
            ("sound", table["sound"]?.node), ("interruption-level", table["interruption-level"]?.node),
            ("thread", .word(item)), ("lane", self.table["lane"]?.node),
        ]
        if !messagePlatforms.isEmpty {
            let others = DeviceFilter.Platform.allCases.filter { $0 == .apple || !surfaces.contains($0) }
            how.append(("platforms", .sequence(Node.Sequence(others.map { .word($0.rawValue) }))))
        }
        if surfaces.contains(.apple) {
            let registered: [(String, Node?)] =
                // A phone whose activity follows a channel registers no token of it.
                isAtStart || channel != nil
                ? [("registered", .word("push-to-start"))]
                : [("registered", .word("live-activity")), ("scope", .word(item))]
            how.append(("unless", .keys(registered)))
        }
        let say = ["title", "subtitle", "body", "deep-link", "image"].map { ($0, table[$0]?.node) }
        return .keys([
            ("when", when([table])), ("to", self.table["to"]?.node), ("say", .keys(say)), ("how", .keys(how)),
            ("policy", .keys([("type", self.table["type"]?.node)])),
        ])
    }

    private func rule(_ moment: Moment, say: Node, how: Node, after signs: [Moment]?) -> Node {
        var policy: [(String, Node?)] = [("type", table["type"]?.node)]
        // The end itself cancels the item, so it has none.
        if moment.step != .end || signs != nil { policy.append(("item", .word(itemName))) }
        return .keys([
            ("when", when((signs ?? [moment]).map(\.table))), ("to", (moment.table["to"] ?? table["to"])?.node),
            ("say", say),
            ("how", how),
            ("policy", .keys(policy)),
        ])
    }

    /// The condition that holds for the events of any of these steps.
    private func when(_ steps: [[String: Field]]) -> Node {
        let events = steps.compactMap { $0["event"]?.node }.flatMap { node in
            if case .sequence(let sequence) = node { Array(sequence) } else { [node] }
        }
        let patterns = steps.compactMap { $0["data"]?.node }
        let data: Node? =
            if patterns.count < steps.count {
                nil
            } else if patterns.count == 1 {
                patterns[0]
            } else {
                .keys([("$or", .sequence(Node.Sequence(patterns)))])
            }
        return .keys([("event", events.count == 1 ? events[0] : .sequence(Node.Sequence(events))), ("data", data)])
    }

    private func state(_ moment: Moment) -> Node? { (moment.table["state"] ?? table["state"])?.node }

    private func words(_ key: String, _ moment: Moment) -> Node? { (moment.table[key] ?? table[key])?.node }

    private func delay(_ field: Field?) -> Node? { field.map { .keys([("after", $0.node)]) } }
}

extension Node {
    /// A mapping of the members that have a value. Each key has the mark of its value, for the lines of problems.
    static func keys(_ members: [(String, Node?)]) -> Node {
        .mapping(
            Node.Mapping(
                members.compactMap { name, value in
                    value.map { (.scalar(Node.Scalar(name, Tag(.implicit), .plain, $0.mark)), $0) }
                }))
    }

    /// A text.
    static func word(_ text: String) -> Node { .scalar(Node.Scalar(text, Tag(.implicit), .doubleQuoted)) }

    static func plain(_ text: String) -> Node { .scalar(Node.Scalar(text, Tag(.implicit), .plain)) }
}

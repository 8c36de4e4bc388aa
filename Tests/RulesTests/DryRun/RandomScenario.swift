import Foundation
import PushProtocol
import TestSupport

@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// A random rule file of one app, its users, and their events of 36 hours. The same seed makes the same scenario.
struct RandomScenario {
    struct Occurrence {
        var at: Timestamp
        var event: DomainEvent
    }

    static let start = moment("2026-03-28T10:00:00Z")
    /// The upper bound of event times, counted from ``start``.
    static let minutes = 1_600

    let app: String
    let text: String
    let rules: RuleSet
    private(set) var people: [String: PersonalSettings] = [:]
    private(set) var occurrences: [Occurrence] = []
    private var random: SplitMix
    private let hasSurfaces: Bool

    /// - Parameter hasSurfaces: whether the file has entries under `live` and `replace`, and their events happen.
    init(seed: UInt64, hasSurfaces: Bool = false) {
        var random = SplitMix(seed: seed)
        let app = "app-\(seed)"
        var parsed: (String, RuleSet)?
        // The reader refuses some combinations; another file is drawn then.
        for _ in 0..<200 where parsed == nil {
            var text = Self.file(app, &random)
            if hasSurfaces { text += "\n" + Self.surfaces(text, &random) }
            parsed = (try? RuleFile.parse(text, file: "\(app).yaml")).map { (text, $0) }
        }
        self.app = app
        text = parsed!.0
        rules = parsed!.1
        self.hasSurfaces = hasSurfaces
        self.random = random
        for user in ["a", "b", "c"] where chance(3, of: 4) { people[user] = settings() }
        occurrences = events()
    }
}

// MARK: - The rule file

extension RandomScenario {
    private static func pick<T>(_ choices: [T], _ random: inout SplitMix) -> T {
        choices[Int.random(in: 0..<choices.count, using: &random)]
    }

    private static func file(_ app: String, _ random: inout SplitMix) -> String {
        let rules = (0..<Int.random(in: 1...3, using: &random)).map { rule("rule-\($0)", &random) }
        return """
            app: \(app)
            zone: \(pick(["UTC", "Europe/Berlin", "America/New_York"], &random))
            types:
              news: { about: News }
              offers: { about: Offers, default: off }
              alarm: { about: Alarms, critical: true }
            caps:
              few: { at-most: \(pick([1, 2], &random)), within: \(pick(["20m", "3h"], &random)) }
              day: { at-most: 3, within: 24h }
            events:
              note.sent:
                examples:
                  - { user: a, users: [a, b], thread: t, item: i, name: Pat, due: "2026-03-29T09:00:00Z", day: "2026-04-01" }
              app.active: { examples: [{ user: a, device: phone, thread: t }] }
              app.inactive: { examples: [{ user: a, device: phone }] }
              thread.opened: { examples: [{ user: a, thread: t }] }
              inbox.opened: { examples: [{ user: a }] }
              item.done: { examples: [{ item: i }] }
              item.revoked: { examples: [{ item: i }] }
              item.taken: { examples: [{ item: i, user: a }] }
              team.joined: { examples: [{ member: { user: a, role: lead } }] }
              team.left: { examples: [{ user: a }] }
              team.listed: { examples: [{ users: [{ id: a, role: lead }] }] }
              note.edited:
                examples:
                  - { user: a, users: [a, b], thread: t, item: i, name: Pat, due: "2026-03-29T09:00:00Z", day: "2026-04-01" }
              order.started: &order { examples: [{ users: [a, b], item: i, name: Pat }] }
              order.moved: *order
              order.readied: *order
              order.ended: *order
            presence:
              - { event: app.active, user: user, device: device, viewing: "{{thread}}", for: \(pick(["2m", "10m"], &random)) }
              - { event: app.inactive, user: user, device: device, gone: true }
            reads:
              - { event: thread.opened, user: user, thread: "{{thread}}" }
              - { event: inbox.opened, user: user }
            done:
              - { event: item.done, item: "item/{{item}}" }
            \(rules.contains { $0.contains("item: ") } ? revocations : "")
            groups:
              - { event: team.joined, group: team, joined: member, id: user, role: role }
              - { event: team.left, group: team, left: user }
              - { event: team.listed, group: team, members: users, id: id, role: role }
            rules:
            \(rules.joined(separator: "\n"))
            """
    }

    /// The worker that removes inbox items does not run here, so they are kept.
    private static let revocations = """
        revoke:
          - { event: item.revoked, item: "item/{{item}}", inbox: keep }
          - { event: item.taken, item: "item/{{item}}", user: user, inbox: keep }
        """

    /// An entry under `live` and, if a rule can have one, an entry under `replace`.
    private static func surfaces(_ text: String, _ random: inout SplitMix) -> String {
        let type = pick(["", "type: news", "type: offers"], &random)
        let replaced = (0..<3).first { number in
            text.contains("  rule-\(number):") && text.contains("item: \"item/{{item}}\"")
        }
        let replace =
            replaced.map { "replace:\n  - { event: note.edited, item: \"item/{{item}}\", rule: rule-\($0) }" } ?? ""
        return """
            live:
              order:
                to: \(pick(["{ users: users }", "{ group: team }"], &random))
                item: "{{item}}"
                on: \(pick(["[apple, android]", "[apple]", "[android, web]"], &random))
                \(type)
                title: "Order of {{name}}"
                attributes-type: Order
                state: { name: "{{name}}" }
                start: { event: order.started }
                update:
                  - { event: order.readied }
                  - { event: order.moved, every: \(pick(["5s", "10m", "1h"], &random)) }
                end: { event: order.ended }
                ends-after: \(pick(["30m", "4h"], &random))
                otherwise: { event: order.readied, title: Ready }
            \(Int.random(in: 0..<2, using: &random) == 0 ? "" : replace)
            """
    }

    private static func rule(_ name: String, _ random: inout SplitMix) -> String {
        var lines = ["  \(name):", "    when: { event: note.sent }"]
        lines.append(
            "    to: "
                + pick(
                    ["{ users: user }", "{ users: users }", "{ group: team }", "{ group: team, role: lead }"], &random))
        let policy = policy(&random)
        // A rule that digests every event has its text in the digest.
        let isSummedUp = policy.contains { $0.hasPrefix("digest") } && !policy.contains("surplus: digest")
        let isPrivate = !isSummedUp && Int.random(in: 0..<4, using: &random) == 0
        var how: [String] = []
        if !isSummedUp { how.append("thread: \"{{thread}}\"") }
        if Bool.random(using: &random) { how.append("badge: \(pick(["unread", "7"], &random))") }
        if Int.random(in: 0..<3, using: &random) == 0 { how.append("expires-after: \(pick(["30m", "6h"], &random))") }
        if isPrivate { how.append("privacy: generic") }
        if !isSummedUp, !isPrivate, Int.random(in: 0..<10, using: &random) == 0 {
            lines.append("    how: { as: badge-only, badge: 3 }")
            return lines.joined(separator: "\n")
        }
        if !isSummedUp {
            let preview = isPrivate ? "preview: { body: Look }, " : ""
            lines.append(
                "    say: { body: \"\(name) {{name}}\", \(preview)languages: { de: { body: \"\(name) von {{name}}\" } } }"
            )
        }
        if !how.isEmpty { lines.append("    how: { \(how.joined(separator: ", ")) }") }
        if !policy.isEmpty { lines.append("    policy: { \(policy.joined(separator: ", ")) }") }
        return lines.joined(separator: "\n")
    }

    private static func policy(_ random: inout SplitMix) -> [String] {
        var policy: [String] = []
        func perhaps(_ share: Int, _ random: inout SplitMix) -> Bool { Int.random(in: 0..<share, using: &random) == 0 }
        if perhaps(2, &random) { policy.append("type: \(pick(["news", "news", "offers", "alarm"], &random))") }
        if perhaps(3, &random) { policy.append("mutes: [\"thread/{{thread}}\"]") }
        if perhaps(3, &random) { policy.append("presence: \(pick(["app", "thread"], &random))") }
        if perhaps(2, &random) {
            policy.append("caps: \(pick(["few", "day", "[few, day]"], &random))")
            if perhaps(2, &random) { policy.append("surplus: \(pick(["inbox", "hold", "digest"], &random))") }
        }
        if perhaps(3, &random) {
            policy.append("quiet-hours: \(pick(["hold", "silent", "inbox", "bypass"], &random))")
        }
        if perhaps(4, &random) { policy.append("hold-for: \(pick(["1h", "12h"], &random))") }
        if perhaps(8, &random) { policy.append("inbox: false") }
        if perhaps(2, &random) { policy.append("item: \"item/{{item}}\"") }
        if perhaps(3, &random) {
            let at = pick(["due", "day"], &random)
            policy.append("schedule: { at: \(at), \(pick(["before: 1h", "after: 30m", "before: 3d"], &random)) }")
        }
        if perhaps(2, &random) {
            var digest = [pick(["at: \"09:00\"", "at: \"18:30\"", "after: 30m", "after: 5h"], &random)]
            if perhaps(2, &random) { digest.append("count: 2") }
            if perhaps(2, &random) { digest.append("remains: \(pick(["never", "counted", "told"], &random))") }
            if perhaps(3, &random) { digest.append("bucket: \"{{thread}}\"") }
            digest.append("keep: { name: \"{{name}}\" }")
            if perhaps(2, &random) { digest.append("order: name") }
            digest.append("say: { body: \"{{count}} from {{first.name}} to {{last.name}}\" }")
            policy.append("digest: { \(digest.joined(separator: ", ")) }")
        }
        if perhaps(5, &random) { policy.append("dedupe: { key: \"{{thread}}\", within: 2h }") }
        return policy
    }
}

// MARK: - People and events

extension RandomScenario {
    private mutating func chance(_ part: Int, of whole: Int) -> Bool {
        Int.random(in: 0..<whole, using: &random) < part
    }

    private mutating func pick<T>(_ choices: [T]) -> T { Self.pick(choices, &random) }

    private mutating func settings() -> PersonalSettings {
        var settings = PersonalSettings()
        if chance(1, of: 12) { settings.isOn = false }
        if chance(1, of: 8) { settings.channels = [pick([.push, .inbox, .banner]): false] }
        if chance(1, of: 4) { settings.types = [pick(["news", "offers"]): pick([true, false])] }
        if chance(1, of: 8) { settings.types["news"] = .each([pick([.push, .inbox]): pick([true, false])]) }
        if chance(1, of: 4) {
            settings.mutes = ["thread/\(pick(["t", "u"]))": PersonalSettings.Mute(isMuted: true, until: nil)]
        }
        if chance(1, of: 2) {
            settings.quietHours = QuietHours(
                days: Set(Weekday.allCases), start: clock(pick(["22:00", "11:00", "17:00", "08:30"])),
                end: clock(pick(["07:00", "14:30", "19:00", "09:30"])))
        }
        if chance(1, of: 3) { settings.digestTime = clock(pick(["08:00", "12:15", "18:00", "23:00"])) }
        if chance(1, of: 3) { settings.zone = zone(pick(["Asia/Tokyo", "Europe/London", "America/New_York"])) }
        if chance(1, of: 4) { settings.language = Language("de") }
        return settings
    }

    private mutating func events() -> [Occurrence] {
        let count = Int.random(in: 6...20, using: &random)
        var minutes: Set<Int> = []
        // All events fall into five hours, so that caps, presence and windows take effect.
        var hours: Set<Int> = []
        while hours.count < 5 { hours.insert(Int.random(in: 0..<Self.minutes / 60, using: &random)) }
        while minutes.count < count {
            let hour = pick(hours.sorted())
            minutes.insert(hour * 60 + pick([0, 1, 2, 5, 10, 30]))
        }
        var occurrences: [Occurrence] = []
        for (number, minute) in minutes.sorted().enumerated() {
            let at = Self.start + .seconds(minute * 60)
            if chance(1, of: 20), let before = occurrences.randomElement(using: &random) {
                occurrences.append(Occurrence(at: at, event: before.event))
                continue
            }
            let (type, data) = occurrence(at)
            var event = DomainEvent(
                app: AppID(rawValue: app)!, id: "e-\(number)", source: "/up", type: type,
                expiresAt: chance(1, of: 12) ? (at + .seconds(1_800)).date : nil, data: data)
            if chance(1, of: 3) { event.time = (at + .seconds(-60 * pick([0, 5, 90, 600]))).date }
            occurrences.append(Occurrence(at: at, event: event))
        }
        return occurrences
    }

    private mutating func occurrence(_ at: Timestamp) -> (String, JSONValue) {
        let user: JSONValue = .string(pick(["a", "b", "c"]))
        let thread: JSONValue = .string(pick(["t", "u"]))
        let item: JSONValue = .string(pick(["i", "j"]))
        if hasSurfaces, chance(1, of: 3) { return surfaceEvent(user, thread, item, at) }
        switch Int.random(in: 0..<22, using: &random) {
        case 0, 1:
            return ("app.active", ["user": user, "device": .string(pick(["phone", "tablet"])), "thread": thread])
        case 2: return ("app.inactive", ["user": user, "device": .string(pick(["phone", "tablet"]))])
        case 3: return ("thread.opened", ["user": user, "thread": thread])
        case 4: return ("inbox.opened", ["user": user])
        case 5, 6: return ("item.done", ["item": item])
        case 7: return ("team.joined", ["member": ["user": user, "role": pick(["lead", nil])]])
        case 8: return ("team.left", ["user": user])
        case 9: return ("team.listed", ["users": .array([["id": user, "role": "lead"], ["id": "c", "role": nil]])])
        case 10: return ("item.revoked", ["item": item])
        case 11: return ("item.taken", ["item": item, "user": user])
        default: return ("note.sent", note(user, thread, item, at))
        }
    }

    private mutating func note(_ user: JSONValue, _ thread: JSONValue, _ item: JSONValue, _ at: Timestamp) -> JSONValue
    {
        let due = (at + .seconds(60 * pick([-90, 20, 90, 600]))).date
        return [
            "user": user, "users": .array([user, pick(["a", "b"])]), "thread": thread, "item": item,
            "name": .string(pick(["Pat", "Sam", "Kim"])), "due": .string(RFC3339.string(from: due)),
            "day": .string(pick(["2026-03-28", "2026-03-29", "2026-04-01", "2026-12-31"])),
        ]
    }

    private mutating func surfaceEvent(
        _ user: JSONValue, _ thread: JSONValue, _ item: JSONValue, _ at: Timestamp
    ) -> (String, JSONValue) {
        if chance(1, of: 4) { return ("note.edited", note(user, thread, item, at)) }
        return (
            pick(["order.started", "order.moved", "order.readied", "order.ended"]),
            ["users": .array([user, pick(["a", "b"])]), "item": item, "name": .string(pick(["Pat", "Sam"]))]
        )
    }
}

import Foundation
import PushProtocol
import Testing

@testable import RuleDryRun
@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// Entries under `live`, which become ordinary rules.
@Suite struct LiveSurfaceTests {
    static let events = """
        app: food
        types: { orders: { about: Orders } }
        events:
          order.accepted: { examples: [{ order: { id: 7, code: A7, minutes: 25 }, customer: 21 }] }
          courier.moved: { examples: [{ order: { id: 7, code: A7, minutes: 9 }, customer: 21 }] }
          order.ready: { examples: [{ order: { id: 7, code: A7, minutes: 12 }, customer: 21 }] }
          order.delivered: { examples: [{ order: { id: 7, code: A7, minutes: 0 }, customer: 21 }] }
        """

    static let entry = """
        live:
          delivery:
            about: An order on its way.
            to: { users: customer }
            item: "{{order.id}}"
            on: [apple, android]
            type: orders
            title: "Order {{order.code}}"
            attributes-type: DeliveryAttributes
            attributes: { order: "{{order.id}}" }
            state: { minutes: "{{order.minutes}}" }
            stale-after: 10m
            start: { event: order.accepted, sound: default }
            update:
              - { event: order.ready }
              - { event: courier.moved, every: 10s }
            end: { event: order.delivered, dismiss-after: 15m }
            ends-after: 2h
            otherwise:
              - { event: order.ready, data: { order: { id: [7] } }, title: "Order {{order.code}} is ready" }
        """

    static func file(_ entry: String = entry) -> String { "\(events)\n\(entry)\nrules: {}" }

    static func problems(_ text: String) -> [String] {
        do {
            _ = try RuleFile.parse(text, file: "food.yaml")
            return []
        } catch {
            return error.problems.map(\.description)
        }
    }

    static func draft(_ type: String, rule: String, at seconds: Double = 1000, minutes: Int = 9) throws
        -> NotificationDraft?
    {
        let set = try RuleFile.parse(file(), file: "food.yaml")
        let order: JSONValue = ["id": 7, "code": "A7", "minutes": .int(Int64(minutes))]
        var event = event(type, app: "food", ["order": order, "customer": 21])
        event.time = Date(timeIntervalSince1970: seconds)
        return try set.evaluate(event, now: Timestamp(milliseconds: 1)).first { $0.rendered.rule == rule }
    }

    @Test func `an entry becomes a rule for each step and platform`() throws {
        let set = try RuleFile.parse(Self.file(), file: "food.yaml")
        #expect(
            set.rules.map(\.name) == [
                "delivery-start", "delivery-start-message", "delivery-update", "delivery-update-message",
                "delivery-update-2", "delivery-update-2-message", "delivery-end", "delivery-end-message",
                "delivery-timeout", "delivery-timeout-message", "delivery-alert-1",
            ])
    }

    @Test func `a start asks for a token, and its alert applies the user's settings`() throws {
        let draft = try #require(try Self.draft("order.accepted", rule: "delivery-start"))
        #expect(draft.content.title == "Order A7")
        #expect(draft.isUserVisible)
        let aps: JSONValue = [
            "event": "start", "timestamp": 1000, "attributes-type": "DeliveryAttributes", "attributes": ["order": 7],
            "content-state": ["minutes": 9], "stale-date": 1600, "input-push-token": 1, "alert": ["sound": "default"],
        ]
        #expect(draft.content.apns?.payload?["aps"] == aps)
        let message = try #require(try Self.draft("order.accepted", rule: "delivery-start-message"))
        #expect(message.isUserVisible)
        #expect(message.content.silent == true)
        #expect(message.rendered.devices?.platforms == [.android])
        #expect(
            message.content.data == [
                "live": "delivery", "live_item": 7, "live_event": "start", "live_time": "1970-01-01T00:16:40.000Z",
                "live_state": ["minutes": 9], "live_title": "Order A7",
            ])
    }

    @Test func `a paced update waits for the next full step of the clock, with low priority`() throws {
        let draft = try #require(try Self.draft("courier.moved", rule: "delivery-update-2", at: 1001))
        #expect(draft.rendered.scope == "7")
        #expect(draft.terms.item == "live/delivery/7")
        #expect(draft.terms.plan?.every == .seconds(10))
        #expect(draft.content.apns?.headers?["apns-priority"] == "5")
        let atOnce = try #require(try Self.draft("order.ready", rule: "delivery-update"))
        #expect(atOnce.terms.plan == nil)
        #expect(atOnce.content.apns?.headers?["apns-priority"] == nil)
        #expect(!atOnce.isUserVisible)
    }

    @Test func `an alert goes to devices that do not show the surface`() throws {
        let draft = try #require(try Self.draft("order.ready", rule: "delivery-alert-1"))
        #expect(draft.content.data == nil)
        #expect(draft.rendered.devices?.platforms == [.apple, .web])
        #expect(draft.rendered.devices?.unless == DeviceSelection.Registered(kind: .liveActivity, scope: "7"))
    }

    // MARK: Over time

    static func line(_ id: Int, _ type: String, _ time: String, minutes: Int = 9) -> String {
        #"{"specversion":"1.0","id":"\#(id)","source":"/shop","type":"\#(type)","time":"2026-03-06T\#(time)Z","#
            + #""at":"2026-03-06T\#(time)Z","data":{"order":{"id":7,"code":"A7","minutes":\#(minutes)},"customer":21}}"#
    }

    /// Returns the decisions of a preview as `<seconds or time> <rule> <answer> <reason>`.
    static func decisions(_ lines: [String], _ entry: String = entry) throws -> [String] {
        let answer = try DryRunTests().run(
            ["preview", "@", "--events", "events.ndjson", "--json"], ["events.ndjson": lines.joined(separator: "\n")],
            rules: ["food.yaml": file(entry)])
        #expect(answer.complaints == [])
        return (answer.json?["decisions"]?.array ?? []).map { decision in
            ["at", "rule", "answer", "reason"].compactMap { decision[$0]?.string }.joined(separator: " ")
        }.filter { !$0.contains("-message") && !$0.contains("-alert") }
    }

    @Test func `of many updates, the newest is sent, and the end cancels what waits`() throws {
        let decisions = try Self.decisions(
            [Self.line(0, "order.accepted", "19:00:00")]
                + (1...9).map { Self.line($0, "courier.moved", "19:01:0\($0)", minutes: 9 - $0) }
                + [
                    Self.line(10, "courier.moved", "19:01:12"), Self.line(11, "order.delivered", "19:01:14"),
                    Self.line(12, "courier.moved", "19:01:13"),
                ])
        let sent = decisions.filter { $0.contains(" push ") }
        #expect(sent.count == 3, "\(decisions.joined(separator: "\n"))")
        #expect(
            sent.map { $0.split(separator: " ").first { $0.hasPrefix("delivery") } } == [
                "delivery-start", "delivery-update-2", "delivery-end",
            ])
    }

    @Test func `a surface without an end ends by time, counted from its last event`() throws {
        let decisions = try Self.decisions([
            Self.line(0, "order.accepted", "19:00:00"), Self.line(1, "order.ready", "19:30:00"),
        ])
        let timeouts = decisions.filter { $0.contains("delivery-timeout") && $0.contains(" push ") }
        #expect(timeouts.count == 1, "\(decisions.joined(separator: "\n"))")
        #expect(timeouts.first?.contains("21:30:00") == true, "\(timeouts)")
    }

    /// `HELIOGRAPH_UPDATES=36000` is an hour. The default is ten minutes, because an hour takes a minute.
    @Test func `of ten updates a second for a long time, each step of the clock sends the newest`() async throws {
        let entry = Self.entry.replacing("on: [apple, android]", with: "on: [apple]")
        var dryRun = DryRun(RuleSets([try RuleFile.parse(Self.file(entry), file: "food.yaml")]))
        let start = Timestamp(milliseconds: 1_772_820_000_000)
        func happen(_ type: String, _ number: Int, minutes: Int) {
            let at = start + .milliseconds(100 * number)
            let order: JSONValue = ["id": 7, "code": "A7", "minutes": .int(Int64(minutes))]
            var event = event(type, app: "food", id: "e\(number)", ["order": order, "customer": 21])
            event.time = at.date
            dryRun.process(event, at: at)
        }
        let count = ProcessInfo.processInfo.environment["HELIOGRAPH_UPDATES"].flatMap { Int($0) } ?? 6000
        happen("order.accepted", 0, minutes: count)
        for number in 1...count {
            happen("courier.moved", number, minutes: count - number)
            // Other tests need the thread.
            if number.isMultiple(of: 50) { await Task.yield() }
        }
        dryRun.advance(to: start + .milliseconds(100 * count) + .seconds(100))
        let sent = dryRun.predictions.filter { $0.rule == "delivery-update-2" && $0.decision.answer == .push }
        #expect(sent.count == count / 100 + 1)
        for (one, next) in zip(sent, sent.dropFirst()) { #expect(next.at - one.at >= .seconds(10)) }
        let states = sent.compactMap {
            $0.notification?.content.apns?.payload?[path: "aps.content-state.minutes"]?.int
        }
        #expect(states == states.sorted(by: >) && states.last == 0)
        // The newest state of each step: the last event before it.
        #expect(states.first == Int64(count) - 99)
        let rest = dryRun.predictions.filter { $0.rule == "delivery-update-2" && $0.decision.reason == .replaced }
        #expect(rest.count == count - sent.count)
        #expect(dryRun.waiting.filter { $0.rendered.rule == "delivery-update-2" }.isEmpty)
    }

    @Test func `the end by time is newer than every paced update before it`() throws {
        let draft = try #require(try Self.draft("order.accepted", rule: "delivery-timeout", at: 1000))
        #expect(draft.content.apns?.payload?[path: "aps.timestamp"] == 8200)
        let message = try #require(try Self.draft("order.accepted", rule: "delivery-timeout-message", at: 1000))
        #expect(message.content.data?["live_time"] == "1970-01-01T02:16:40.000Z")
        #expect(draft.terms.plan?.due == .moment(Timestamp(milliseconds: 8_200_000)))
    }

    @Test func `a start has the item of its surface, so that an end before it cancels it`() throws {
        let draft = try #require(try Self.draft("order.accepted", rule: "delivery-start"))
        #expect(draft.terms.item == "live/delivery/7" && draft.terms.startsSurface)
        let update = try #require(try Self.draft("order.ready", rule: "delivery-update"))
        #expect(!update.terms.startsSurface)
        var dryRun = DryRun(RuleSets([try RuleFile.parse(Self.file(), file: "food.yaml")]))
        let order: JSONValue = ["id": 7, "code": "A7", "minutes": 0]
        for (type, seconds) in [("order.delivered", 2000.0), ("order.accepted", 1000.0)] {
            var event = event(type, app: "food", id: type, ["order": order, "customer": 21])
            event.time = Date(timeIntervalSince1970: seconds)
            dryRun.process(event, at: Timestamp(milliseconds: 3_000_000))
        }
        let start = dryRun.predictions.first { $0.rule == "delivery-start" }
        #expect(start?.decision == RuleDecision(answer: .drop, reason: .done))
    }

    // MARK: Mistakes

    struct Mistake: Sendable {
        let right: String
        let wrong: String
        let problem: String
    }

    static let mistakes = [
        Mistake(
            right: "minutes: \"{{order.minutes}}\"", wrong: "minutes: \"{{order.minuts}}\"",
            problem: "18: live.delivery.start.say.live-activity.content-state.minutes: "
                + "no example of the event has “order.minuts”; did you mean “order.minutes”?"),
        Mistake(right: "every: 10s", wrong: "every: 2h", problem: "23: live.delivery.update.1.every: at most 1h"),
        Mistake(
            right: "to: { users: customer }", wrong: "to: { topic: all }",
            problem: "11: live.delivery.to: a live surface is for “users” or a “group”, not for a “topic”"),
        Mistake(
            right: "on: [apple, android]", wrong: "on: [apple, phone]",
            problem: "13: live.delivery.on.1: “phone” is not one of apple, android, web"),
        Mistake(
            right: "type: orders", wrong: "type: order",
            problem: "14: live.delivery.start.policy.type: there is no “order” under “types”; did you mean “orders”?"),
        Mistake(
            right: "end: { event: order.delivered, dismiss-after: 15m }", wrong: "end: { event: order.gone }",
            problem: "24: live.delivery.end.event: the event “order.gone” is not known; describe it under “events”"
        ),
    ]

    @Test(arguments: mistakes)
    func `a mistake is reported once, at its place in the entry`(_ mistake: Mistake) {
        let text = Self.file(Self.entry.replacing(mistake.right, with: mistake.wrong))
        #expect(text != Self.file())
        #expect(Self.problems(text) == ["food.yaml:\(mistake.problem)"])
    }

    @Test func `a rule of the file cannot have the name of a step`() {
        let rule = "delivery-end: { when: { event: order.ready }, to: { users: customer }, say: { body: x } }"
        let text = "\(Self.events)\n\(Self.entry)\nrules: { \(rule) }"
        #expect(
            Self.problems(text) == [
                "food.yaml:24: live.delivery.end: a rule is named “delivery-end”; rename the rule or the entry"
            ])
    }
}

import Foundation
import PushProtocol
import Testing

@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// Rules for other push types than alerts, and for broadcast channels, topics and conditions.
@Suite struct KindTests {
    static let example =
        #"{ users: [1], game: { id: g-1, channel: "dHN0", ends: "2026-03-31T09:00:00Z", end_seconds: 1767225600, score: 3 }, team: red }"#

    static func file(to: String = "{ users: users }", say: String, how: String, policy: String? = nil) -> String {
        """
        app: test
        types: { calls: { about: Calls } }
        caps: { hourly: { at-most: 2, within: 1h } }
        events:
          game.changed:
            examples: [\(example)]
        rules:
          only:
            when: { event: game.changed }
            to: \(to)
            say: \(say)
            how: \(how)
        \(policy.map { "    policy: \($0)\n" } ?? "")
        """
    }

    static let data: JSONValue = [
        "users": ["7"], "team": "red",
        "game": [
            "id": "g-1", "channel": "dHN0", "ends": "2026-03-31T09:00:00Z", "end_seconds": 1_767_225_600, "score": 3,
        ],
    ]

    static func draft(_ text: String, at time: Date? = Date(timeIntervalSince1970: 1_000.9)) throws -> NotificationDraft
    {
        var event = event("game.changed", app: "test", data)
        event.time = time
        return try #require(try parse(text).evaluate(event, now: Timestamp(milliseconds: 2_500)).first)
    }

    // MARK: Live Activities

    static let start = """
        { title: "{{team}} plays", live-activity: { event: start, attributes-type: GameAttributes,
          attributes: { id: "{{game.id}}" }, content-state: { score: "{{game.score}}", by: "{{team}}" },
          stale-date: { at: game.ends, after: 1m }, relevance-score: "{{game.score}}", input-push-token: true } }
        """

    @Test func `a Live Activity start has an alert, and its other fields under Apple's names`() throws {
        let draft = try Self.draft(Self.file(say: Self.start, how: "{ as: live-activity, sound: horn.caf }"))
        #expect(draft.content.title == "red plays")
        #expect(draft.content.sound == nil)
        #expect(draft.content.apns?.headers == ["apns-push-type": "liveactivity"])
        let aps: JSONValue = [
            "event": "start", "timestamp": 1000, "attributes-type": "GameAttributes", "attributes": ["id": "g-1"],
            "content-state": ["score": 3, "by": "red"], "stale-date": 1_774_947_660, "relevance-score": 3,
            "input-push-token": 1, "alert": ["sound": "horn.caf"],
        ]
        #expect(draft.content.apns?.payload == ["aps": aps])
        #expect(draft.isUserVisible && !draft.policy.inbox && draft.policy.quietHours == .bypass)
    }

    @Test func `a Live Activity update skips the recipient's policy and carries the event's time`() throws {
        let text = Self.file(
            say: #"{ live-activity: { event: update, content-state: { score: "{{game.score}}" } } }"#,
            how: #"{ as: live-activity, scope: "{{game.id}}", apns: { payload: { aps: { relevance-score: 9 } } } }"#)
        let draft = try Self.draft(text)
        #expect(!draft.isUserVisible && draft.scope == "g-1")
        let aps: JSONValue = [
            "event": "update", "timestamp": 1000, "content-state": ["score": 3], "relevance-score": 9,
        ]
        #expect(draft.content.apns?.payload == ["aps": aps])
        #expect(draft.content.title == nil && !draft.content.silent)
        // An event without a time uses the current time.
        let now = try Self.draft(text, at: nil)
        #expect(now.content.apns?.payload?[path: "aps.timestamp"] == 2)
        let sent = draft.messages
        #expect(sent.map(\.scope) == ["g-1"])
        #expect(try sent.map { try Notification.decode(wireBody: $0.wireBody()) } == sent)
    }

    @Test func `a Live Activity end carries the rule's dismissal date`() throws {
        func dismissal(_ moment: String) throws -> JSONValue? {
            try Self.draft(
                Self.file(
                    say: "{ live-activity: { event: end, dismissal-date: \(moment) } }", how: "{ as: live-activity }")
            ).content.apns?.payload?[path: "aps.dismissal-date"]
        }
        #expect(try dismissal("{ after: 5m }") == 1300)
        #expect(try dismissal("{ at: game.end_seconds }") == 1_767_225_600)
        #expect(try dismissal("{ at: game.end_seconds, before: 10s }") == 1_767_225_590)
    }

    // MARK: Others

    @Test func `a call goes to VoIP tokens, and to Android with high priority`() throws {
        let draft = try Self.draft(
            Self.file(
                say: #"{ data: { call: "{{game.id}}" }, payload: { caller: "{{team}}" } }"#,
                how: "{ as: voip, fcm: { message: { android: { ttl: 0s } } } }",
                policy: "{ type: calls, caps: hourly, quiet-hours: inbox }"))
        #expect(
            draft.content
                == Content(
                    data: ["call": "g-1"], silent: true,
                    apns: APNsOverride(headers: ["apns-push-type": "voip"], payload: ["caller": "red"]),
                    fcm: FCMOverride(message: ["android": ["priority": "HIGH", "ttl": "0s"]])))
        #expect(draft.isUserVisible && !draft.policy.inbox && draft.policy.quietHours == .inbox)
    }

    @Test(
        arguments: [
            ("{ as: widgets }", "{}", "widgets", ["aps": ["content-changed": true]]),
            ("{ as: controls }", "{}", "controls", ["aps": ["content-changed": true]]),
            ("{ as: location }", "{}", "location", nil),
            ("{ as: complication }", #"{ data: { n: 1 } }"#, "complication", nil),
            ("{ as: push-to-talk, scope: c }", #"{ payload: { who: "{{team}}" } }"#, "pushtotalk", ["who": "red"]),
            ("{ as: mdm }", #"{ payload: { mdm: "{{game.id}}" } }"#, "mdm", ["mdm": "g-1"]),
            (
                "{ as: file-provider }", #"{ payload: { container-identifier: a, domain: "{{team}}" } }"#,
                "fileprovider",
                ["container-identifier": "a", "domain": "red"]
            ),
        ] as [(String, String, String, JSONValue?)])
    func `each kind has its push type and its required content`(
        how: String, say: String, pushType: String, payload: JSONValue?
    ) throws {
        let content = try Self.draft(Self.file(say: say, how: how)).content
        #expect(content.apns?.headers == ["apns-push-type": pushType])
        #expect(content.apns?.payload == payload)
        #expect(content.title == nil && content.body == nil)
    }

    @Test func `every kind but alert, silent and badge has its own push type`() {
        let kinds = Rule.DeliveryOptions.Kind.allCases
        #expect(Set(kinds.compactMap(\.pushType)).count == kinds.count - 3)
    }

    // MARK: Channels, topics and conditions

    @Test func `a channel, a topic and a condition each get one message without a user id`() throws {
        let update = #"{ live-activity: { event: update, content-state: { n: 1 } } }"#
        func sent(_ to: String, _ say: String, _ how: String) throws -> [PushProtocol.Notification] {
            try Self.draft(Self.file(to: to, say: say, how: how)).messages
        }
        let channel = try sent(
            #"{ channel: "{{game.channel}}", environment: development }"#, update, "{ as: live-activity }")
        #expect(channel.count == 1 && channel[0].recipients.isEmpty && channel[0].audience == nil)
        #expect(channel[0].lane == .interactive)
        #expect(channel[0].broadcast?.destination == .channel(ChannelID(rawValue: "dHN0")!, .development))
        let topic = try sent(#"{ fcm-topic: "team-{{team}}" }"#, "{ body: Hi }", "{ lane: bulk }")
        #expect(topic[0].broadcast?.destination == .topic(FCMTopic(rawValue: "team-red")!))
        let condition = "'red' in topics && !('blue' in topics)"
        let both = try sent(
            #"{ fcm-condition: "'{{team}}' in topics && !('blue' in topics)" }"#, "{ body: Hi }", "{ as: alert }")
        #expect(both[0].broadcast?.destination == .condition(FCMCondition(rawValue: condition)!))
        for message in channel + topic + both {
            #expect(try Notification.decode(wireBody: message.wireBody()) == message)
        }
        // The same event gives the same notification id.
        #expect(
            try sent(#"{ fcm-topic: "team-{{team}}" }"#, "{ body: Hi }", "{ lane: bulk }")[0].broadcast
                == topic[0].broadcast)
    }

    @Test func `a channel or topic name that the provider refuses is an event error`() throws {
        let rules = try parse(Self.file(to: #"{ fcm-topic: "{{team}}" }"#, say: "{ body: Hi }", how: "{ lane: bulk }"))
        var data = Self.data.object ?? [:]
        data["team"] = "the reds"
        #expect(
            throws: RenderError(
                rule: "only", place: "to.fcm-topic", problem: .unsuitable(path: "team", expected: FCMTopic.rule))
        ) { try rules.evaluate(event("game.changed", app: "test", .object(data))) }
    }

    @Test func `a broadcast skips recipient policies and stores one decision`() throws {
        let rules = try parse(
            Self.file(to: #"{ fcm-topic: "{{team}}" }"#, say: "{ body: Hi }", how: "{ lane: bulk }"))
        let happened = event("game.changed", app: "test", Self.data)
        let one = EventCase(happened, ruleSet: rules, arrivedAt: .now, drafts: try rules.evaluate(happened))
        var people: [PersonKey: Person] = [:]
        let decided = one.decisions(&people, ItemState(), now: .now)
        #expect(decided.map(\.decision) == [RuleDecision(answer: .push, reason: .broadcast)])
        #expect(decided.map(\.person.user.rawValue) == ["(FCM topic red)"])
        #expect(decided[0].notification == one.drafts[0].broadcast?.notification)
        #expect(one.peopleWithSettings.isEmpty && one.peopleWithCaps.isEmpty)
    }

    // MARK: Mistakes

    @Test(arguments: [
        ("{ body: B }", "{ as: voip }", "11: rules.only.say.body: “as: voip” has no “body”"),
        (
            "{ payload: { aps: {} } }", "{ as: voip }",
            "11: rules.only.say.payload: “as” sets “aps”; the payload has only the members beside it"
        ),
        ("{ data: { n: 1 } }", "{ as: widgets }", "11: rules.only.say.data: “as: widgets” has no “data”"),
        (
            "{ body: B, payload: { n: 1 } }", "{ as: alert }",
            "11: rules.only.say.payload: “as: alert” takes no “payload”; use “data”"
        ),
        (
            "{ body: B }", "{ scope: s }",
            "12: rules.only.how.scope: “as: alert” takes no “scope”: a device has one token for it"
        ),
        ("{}", "{ as: voip, sound: s }", "12: rules.only.how.sound: “as: voip” has no “sound”"),
        ("{}", "{ as: location, badge: 1 }", "12: rules.only.how.badge: “as: location” has no “badge”"),
        (
            "{ body: B }", "{ apns: { headers: { apns-push-type: voip } } }",
            "12: rules.only.how.apns.headers.apns-push-type: set the push type with “as” under “how”"
        ),
        ("{}", "{ as: mdm }", "8: rules.only: “as: mdm” needs “mdm” in the “payload” under “say”"),
        (
            "{ payload: { mdm: a, b: c } }", "{ as: mdm }",
            "11: rules.only.say.payload: an MDM payload has only “mdm”"
        ),
        (
            "{ payload: { domain: a } }", "{ as: file-provider }",
            "8: rules.only: “as: file-provider” needs “container-identifier” in the “payload” under “say”"
        ),
        (
            "{ body: B }", "{ as: live-activity }",
            "8: rules.only: “as: live-activity” needs “live-activity” under “say”"
        ),
        (
            "{ live-activity: { event: update, content-state: {} } }", "{ as: voip }",
            "11: rules.only.say.live-activity: “live-activity” needs “as: live-activity” under “how”"
        ),
        (
            "{ live-activity: { event: pause } }", "{ as: live-activity }",
            "11: rules.only.say.live-activity.event: “pause” is not one of start, update, end"
        ),
        (
            "{ live-activity: { event: update } }", "{ as: live-activity }",
            "11: rules.only.say.live-activity: “event: update” needs “content-state”"
        ),
        (
            "{ live-activity: { event: start, content-state: {}, attributes-type: T, attributes: {} } }",
            "{ as: live-activity }",
            "8: rules.only: a Live Activity starts with an alert: it needs a title or a body under “say”"
        ),
        (
            "{ live-activity: { event: end, stale-date: { after: 1m } } }", "{ as: live-activity }",
            "11: rules.only.say.live-activity.stale-date: “event: end” has no “stale-date”"
        ),
        (
            "{ live-activity: { event: update, content-state: {}, dismissal-date: { after: 1m } } }",
            "{ as: live-activity }",
            "11: rules.only.say.live-activity.dismissal-date: “event: update” has no “dismissal-date”"
        ),
        (
            "{ live-activity: { event: end, dismissal-date: { at: team } } }", "{ as: live-activity }",
            "11: rules.only.say.live-activity.dismissal-date.at: with an example of game.changed: team is not a time (2026-03-31T09:00:00Z), or one in Unix seconds"
        ),
        (
            #"{ live-activity: { event: update, content-state: { n: "{{qqqqqq}}" } } }"#, "{ as: live-activity }",
            "11: rules.only.say.live-activity.content-state.n: no example of the event has “qqqqqq”"
        ),
        (
            "{ live-activity: { event: update, content-state: {}, relevance-score: high } }", "{ as: live-activity }",
            "11: rules.only.say.live-activity.relevance-score: a relevance score is a number, or one variable in quotes"
        ),
        (
            "{ live-activity: { event: update, content-state: {}, contnet-state: {} } }", "{ as: live-activity }",
            "11: rules.only.say.live-activity.contnet-state: unknown key; did you mean “content-state”?"
        ),
    ])
    func `a field that does not fit the kind is reported with line and key`(say: String, how: String, problem: String) {
        let text = Self.file(say: say, how: how)
        let problems = Self.problems(text)
        #expect(problems == ["test.yaml:\(problem)"])
    }

    @Test(arguments: [
        (
            #"{ channel: "{{game.channel}}" }"#, "{ body: B }", "{ as: alert }",
            "8: rules.only: a broadcast channel takes only “as: live-activity” with “event: update” or “event: end”"
        ),
        (
            #"{ channel: "{{team}}!" }"#, "{ live-activity: { event: end } }", "{ as: live-activity }",
            "10: rules.only.to.channel: with an example of game.changed: team is not \(ChannelID.rule)"
        ),
        (
            "{ fcm-topic: a, environment: production }", "{ body: B }", "{ as: alert }",
            "10: rules.only.to.environment: only a “channel” takes an “environment”"
        ),
        (
            "{ fcm-topic: a, channel: b }", "{ body: B }", "{ as: alert }",
            "10: rules.only.to: set exactly one of channel, fcm-topic, fcm-condition"
        ),
        (
            "[{ fcm-topic: a }, { users: users }]", "{ body: B }", "{ as: alert }",
            "10: rules.only.to.0: no other recipients can be added: only the provider knows the subscribers"
        ),
        (
            "{ fcm-topic: a }", "{ data: { n: 1 } }", "{ as: voip }",
            "8: rules.only: FCM topics take only “as: alert” and “as: silent”"
        ),
        (
            "{ fcm-condition: \"'a' in topic\" }", "{ body: B }", "{ as: alert }",
            "10: rules.only.to.fcm-condition: with an example of game.changed: the name is not \(FCMCondition.rule)"
        ),
    ])
    func `an unsupported broadcast is refused`(to: String, say: String, how: String, problem: String) {
        #expect(Self.problems(Self.file(to: to, say: say, how: how)) == ["test.yaml:\(problem)"])
    }

    @Test(arguments: [
        (
            "{ hold-for: 1h }",
            "13: rules.only.policy.hold-for: “as: voip” is sent at once or not at all, so this key does not apply"
        ),
        (
            "{ quiet-hours: hold }",
            "13: rules.only.policy.quiet-hours: a kind that is sent at once takes only bypass or inbox"
        ),
        ("{ presence: thread }", "13: rules.only.policy.presence: “as: voip” has no thread; use “presence: app”"),
    ])
    func `a kind that cannot be delayed has no delaying policy`(policy: String, problem: String) {
        #expect(Self.problems(Self.file(say: "{}", how: "{ as: voip }", policy: policy)) == ["test.yaml:\(problem)"])
    }

    @Test func `a kind that is not user-visible has no policy`() {
        let update = "{ live-activity: { event: update, content-state: {} } }"
        #expect(
            Self.problems(Self.file(say: update, how: "{ as: live-activity }", policy: "{ type: calls }")) == [
                "test.yaml:13: rules.only.policy: “as: live-activity” takes no policy here: it does not alert the user"
            ])
    }

    static func problems(_ text: String) -> [String] {
        do {
            _ = try RuleFile.parse(text, file: "test.yaml")
            return []
        } catch {
            return error.problems.map(\.description)
        }
    }
}

import Foundation
import PushProtocol
import Testing

@testable import RuleDryRun
@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// `channel` of an entry under `live`, without a database.
@Suite struct SurfaceChannelFileTests {
    static func file(_ channel: String = "channel: { above: 1 }") -> String {
        LiveSurfaceTests.file("\(LiveSurfaceTests.entry)\n    \(channel)")
    }

    static func drafts(_ type: String, at seconds: Double = 1000) throws -> [String: NotificationDraft] {
        let set = try RuleFile.parse(file("channel: { above: 1, environments: development }"), file: "food.yaml")
        let order: JSONValue = ["id": 7, "code": "A7", "minutes": 9]
        var event = event(type, app: "food", ["order": order, "customer": 21])
        event.time = Date(timeIntervalSince1970: seconds)
        let drafts = try set.evaluate(event, now: Timestamp(milliseconds: 1))
        return Dictionary(uniqueKeysWithValues: drafts.map { ($0.rendered.rule, $0) })
    }

    @Test func `an entry with a channel has a rule for channels in each step after the start`() throws {
        let set = try RuleFile.parse(Self.file(), file: "food.yaml")
        #expect(
            set.rules.map(\.name).filter { $0.hasSuffix("-channel") } == [
                "delivery-update-channel", "delivery-update-2-channel", "delivery-end-channel",
                "delivery-timeout-channel",
            ])
        #expect(set.channelEnvironments == [.production])
        #expect(try RuleFile.parse(LiveSurfaceTests.file(), file: "food.yaml").channelEnvironments == [])
    }

    @Test func `a start opens channels above a number of recipients`() throws {
        let start = try #require(try Self.drafts("order.accepted")["delivery-start"])
        let role = SurfaceChannelRole.opens(above: 1, environments: [.development], endsAfter: .seconds(7200))
        #expect(start.channels == SurfaceChannels(item: "live/delivery/7", role: role))
        let record = EventRecord(
            event("order.accepted", app: "food", [:]), ruleSet: UUID(), arrivedAt: Timestamp(milliseconds: 5))
        #expect(start.opening(recipients: 1, record) == nil)
        #expect(start.opening(recipients: 2, record)?.environments == [.development])
        let message = try #require(try Self.drafts("order.accepted")["delivery-start-message"])
        #expect(message.channels == nil)
    }

    @Test func `a state for channels has no users, no scope, and lasts as long as APNs keeps it`() throws {
        let update = try #require(try Self.drafts("courier.moved")["delivery-update-2-channel"])
        #expect(update.channels == SurfaceChannels(item: "live/delivery/7", role: .updates))
        #expect(update.recipients.isEmpty && update.rendered.isToChannels && update.rendered.scope == nil)
        #expect(update.content.apns?.headers?["apns-priority"] == "5")
        #expect(update.terms.item == "live/delivery/7")
        let end = try #require(try Self.drafts("order.delivered")["delivery-end-channel"])
        #expect(end.channels == SurfaceChannels(item: "live/delivery/7", role: .ends))
        #expect(end.rendered.expiresAt == Timestamp(milliseconds: 1) + SurfaceChannelRole.storage)
        let timeout = try #require(try Self.drafts("order.accepted")["delivery-timeout-channel"])
        #expect(timeout.channels?.role == .endsLater(.seconds(7200)))
    }

    @Test func `a phone that started the surface remotely gets no alert`() throws {
        let draft = try #require(try Self.drafts("order.ready")["delivery-alert-1"])
        #expect(draft.rendered.devices?.unless == DeviceSelection.Registered(kind: .pushToStart))
    }

    @Test func `a preview decides without channels`() throws {
        var dryRun = DryRun(RuleSets([try RuleFile.parse(Self.file("channel: { above: 0 }"), file: "food.yaml")]))
        let order: JSONValue = ["id": 7, "code": "A7", "minutes": 0]
        for (type, seconds) in [("order.accepted", 1), ("order.ready", 2), ("order.delivered", 3)] {
            dryRun.process(
                event(type, app: "food", id: type, ["order": order, "customer": 21]),
                at: Timestamp(milliseconds: Int64(seconds) * 1000))
        }
        #expect(!dryRun.predictions.isEmpty)
        #expect(dryRun.predictions.allSatisfy { !$0.rule.hasSuffix("-channel") })
    }

    static let mistakes: [(String, String)] = [
        ("channel: {}", "live.delivery.channel: “above” is missing"),
        ("channel: { above: -1 }", "live.delivery.channel.above: expected a whole number from 0 to 1000000000"),
        (
            "channel: { above: 1, environments: staging }",
            "live.delivery.channel.environments: “staging” is not one of production, development"
        ),
        ("channel: { abve: 1 }", "live.delivery.channel.abve: unknown key; did you mean “above”?"),
    ]

    @Test(arguments: mistakes) func `a mistake is reported`(channel: String, problem: String) {
        let problems = LiveSurfaceTests.problems(Self.file(channel))
        #expect(problems.map { $0.split(separator: " ", maxSplits: 1)[1] } == [problem[...]])
    }

    @Test func `only an entry for Apple's phones has a channel`() {
        let text = Self.file().replacing("on: [apple, android]", with: "on: android")
        #expect(
            LiveSurfaceTests.problems(text).contains {
                $0.hasSuffix("live.delivery.channel: only the phones of “apple” follow a broadcast channel")
            })
    }

    @Test(arguments: [ProviderEnvironment.production, .development])
    func `the label of a channel names it`(_ environment: ProviderEnvironment) {
        let destination = Broadcast.Destination.channel(ChannelID(rawValue: "dHN0+/==")!, environment)
        #expect(Broadcast.Destination(channelLabel: destination.decisionLabel) == destination)
    }

    @Test(arguments: [
        "", "(everyone)", "(channel of production)", "(channel a_b of production)", "(channel a of moon)",
    ])
    func `another label names no channel`(_ label: String) {
        #expect(Broadcast.Destination(channelLabel: label) == nil)
    }

    @Test func `a channel takes no state that is older than its newest one or its start`() {
        let channel = OpenChannel(
            channel: ChannelID(rawValue: "dHN0")!, environment: .production, startedAt: Timestamp(milliseconds: 10),
            newestAt: Timestamp(milliseconds: 10)
        ).noting(Timestamp(milliseconds: 20)).noting(Timestamp(milliseconds: 15))
        func takes(_ role: SurfaceChannelRole, _ moment: Int64) -> Bool {
            channel.takes(role, occurredAt: Timestamp(milliseconds: moment))
        }
        #expect(!takes(.updates, 19) && takes(.updates, 20))
        #expect(!takes(.ends, 9) && takes(.ends, 10) && takes(.endsLater(.seconds(1)), 10))
    }
}

import Foundation
import Messaging
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RuleDryRun
@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// Rules whose recipients only the registry can find, with a policy: `segment` under `to`.
@Suite(.timeLimit(.minutes(4))) struct SegmentRuleTests {
    static func rules(
        to: String =
            #"{ segment: { tag: "city/{{city}}", devices: { not-seen-for: 14d }, hold-out: 10% }, except: owner }"#,
        policy: String = "{ type: offers, caps: daily }"
    ) -> String {
        """
        app: test
        types: { offers: { about: Offers } }
        caps: { daily: { at-most: 1, within: 1d } }
        events:
          offer.published: { examples: [{ city: malaga, text: Two for one, owner: 9, day: "2026-03-29" }] }
        rules:
          offer:
            when: { event: offer.published }
            to: \(to)
            say: { body: "{{text}}" }
            policy: \(policy)
        """
    }

    private static func problems(_ to: String) -> [String] {
        do {
            _ = try RuleFile.parse(rules(to: to), file: "test.yaml")
            return []
        } catch {
            return error.problems.map { "\($0.key): \($0.problem)" }
        }
    }

    static let offer = event(
        "offer.published", app: "test", id: "o-1", ["city": "malaga", "text": "Two for one", "owner": 9])

    @Test func `mistakes name the key`() {
        #expect(Self.problems("{ segment: { audience: everyone } }") == [])
        let kinds = "needs exactly one of “audience: everyone”, “topic” and “tag”"
        #expect(Self.problems("{ segment: { hold-out: 10% } }") == ["rules.offer.to.segment: \(kinds)"])
        #expect(Self.problems("{ segment: { tag: a, topic: b } }") == ["rules.offer.to.segment: \(kinds)"])
        #expect(
            Self.problems("{ segment: { tag: a, hold-out: 100% } }")
                == ["rules.offer.to.segment.hold-out: expected a share from 1% to 99%, such as 10%"])
        #expect(
            Self.problems("{ segment: { tag: a, rate: 5 } }").first?.hasPrefix(
                "rules.offer.to.segment.rate: unknown key") == true)
        #expect(
            Self.problems("{ segment: { tag: a, devices: { app-version: { from: x } } } }")
                == [
                    "rules.offer.to.segment.devices.app-version.from: “x” is not a version such as 4.2 or 4.2.1; put it in quotes"
                ])
        #expect(
            Self.problems("[{ segment: { tag: a } }, { users: owner }]").contains(
                "rules.offer.to.0: no other recipients can be added: only the token registry knows the segment"))
        #expect(Self.problems("{ tag: a }").contains { $0.contains("the rule takes no “policy”") })
    }

    @Test func `the request to the registry has the segment and the event`() throws {
        let draft = try #require(
            try parse(Self.rules()).evaluate(Self.offer, now: moment("2026-03-15T12:00:00Z")).first)
        let request = try #require(draft.messages.first)
        let audience = try #require(request.audience)
        #expect(audience.resolves && audience.holdOut == 10 && request.lane == .bulk && request.expiresAt == nil)
        #expect(audience.members == .group(.tag(GroupName(rawValue: "city/malaga")!)))
        #expect(audience.devices?.lastSeen?.before == moment("2026-03-01T12:00:00Z"))
        #expect(request.content == Content(data: ["event": Self.offer.cloudEvent]))
    }

    @Test func `an event that is too large for pages is refused`() throws {
        var large = Self.offer
        large.data = large.data.merging(["text": .string(String(repeating: "a", count: 70_000))])
        #expect(throws: RenderError.self) { try parse(Self.rules()).evaluate(large) }
    }

    private struct Fixture {
        let pool: PostgresPool
        let handler: EventHandler

        init(_ pool: PostgresPool, _ rules: String = SegmentRuleTests.rules()) throws {
            self.pool = pool
            handler = EventHandler(
                currentRules: CurrentRules(RuleSets([try parse(rules)])), store: DecisionStore(pool: pool),
                now: { moment("2026-03-15T12:00:00Z") })
        }

        func handle(_ event: DomainEvent) async throws -> Verdict {
            let inbound = delivered(
                String(decoding: try WireCoding.encode(event.cloudEvent), as: UTF8.self),
                routingKey: "test.\(event.type)")
            return try await handler.handle([Delivery(inbound: inbound, message: try handler.decode(inbound))])[0]
        }

        func page(_ users: [String], part: Int = 0) async throws -> Verdict {
            let page = SegmentPage(
                event: SegmentRuleTests.offer, rule: "offer", users: users.map(user),
                source: "/heliograph/segments/\(Hexadecimal.text(of: DerivedID.namespace))/0.0.\(part)")
            return try await handle(page.domainEvent)
        }

        func log() async throws -> [String] {
            try await pool.query(
                """
                SELECT decision.user_id || ' ' || answer || ' ' || reason
                FROM rules.decision JOIN rules.event ON event.key = decision.event
                WHERE event.app = 'test' AND event.id = 'o-1'
                """
            ).map { try $0.decode(String.self, at: 0) }.sorted()
        }
    }

    @Test func `each user of a page is decided by their settings and caps, once`() async throws {
        try await RulesDatabase.withPool { pool in
            let fixture = try Fixture(pool)
            try await pool.execute(
                """
                INSERT INTO rules.person (app, user_id, settings) VALUES
                    ('test', '2', '{"types":{"offers":false}}'),
                    ('test', '3', '{"quiet_hours":{"start":"10:00","end":"14:00"},"zone":"UTC"}')
                """)
            for _ in 0..<2 {
                let request = try await fixture.handle(Self.offer)
                #expect(request.outbound.map(\.routingKey) == ["bulk.test"])
            }
            for _ in 0..<2 {
                let verdict = try await fixture.page(["1", "2", "3", "9"])
                let sent = try verdict.outbound.map { try Notification.decode(wireBody: $0.body) }
                #expect(sent.map { $0.recipients.map(\.user.rawValue) } == [["1"]])
                #expect(sent.map(\.content.body) == ["Two for one"])
            }
            _ = try await fixture.page(["4"], part: 1)
            #expect(
                try await fixture.log() == [
                    "(segment of tag city/malaga) push segment", "1 push wanted", "2 inbox type-off",
                    "3 hold quiet-hours", "4 push wanted",
                ])
            #expect(try await RulesDatabase.count("rules.inbox", pool) == 4)
        }
    }

    @Test func `given no user, then the decision says so, and nothing is sent`() async throws {
        try await RulesDatabase.withPool { pool in
            let fixture = try Fixture(pool)
            #expect(try await fixture.page([]).outbound.isEmpty)
            #expect(try await fixture.log() == ["(nobody) drop nobody"])
        }
    }

    @Test func `given a rule that is gone, then its page is dead-lettered`() async throws {
        try await RulesDatabase.withPool { pool in
            let fixture = try Fixture(pool, Self.rules().replacing("  offer:\n", with: "  other:\n"))
            let verdict = try await fixture.page(["1"])
            #expect(verdict.disposition.label == "dead-letter")
        }
    }

    @Test func `given a revoked event, then its pages are dropped`() async throws {
        try await RulesDatabase.withPool { pool in
            let fixture = try Fixture(pool)
            try await pool.execute(
                """
                INSERT INTO rules.revocation (id, app, event_id, inbox, source, requested_by)
                VALUES (gen_random_uuid(), 'test', 'o-1', 'remove', 'operator', 'me')
                """)
            #expect(try await fixture.handle(Self.offer).outbound.isEmpty)
            #expect(try await fixture.page(["1"]).outbound.isEmpty)
            #expect(try await fixture.log() == ["(segment of tag city/malaga) drop revoked", "1 drop revoked"])
        }
    }

    @Test func `a preview leaves the hold-out of a segment out`() throws {
        var dryRun = DryRun(RuleSets([try parse(Self.rules())]))
        let named = (1...500).map { "u-\($0)" }
        dryRun.segments["tag city/malaga"] = named.map(user)
        dryRun.process(Self.offer, at: moment("2026-03-15T12:00:00Z"))
        let audience = try #require(
            try parse(Self.rules()).evaluate(Self.offer, now: .now).compactMap(\.segment).first?.audience)
        let told = dryRun.predictions.dropFirst().map(\.user.rawValue)
        #expect(told.sorted() == named.filter { !audience.isHeldOut(user($0)) && $0 != "9" }.sorted())
        #expect((400..<490).contains(told.count))
    }

    /// The clocks of Berlin change at 02:30 on both days.
    @Test(arguments: [
        (
            "2026-03-29", "2026-03-28T20:00:00Z",
            [
                "berlin": "2026-03-29T01:00:00Z", "new-york": "2026-03-29T06:30:00Z", "none": "2026-03-29T02:30:00Z",
                // It is past there.
                "kiritimati": "2026-03-28T20:00:00Z",
            ]
        ),
        (
            "2026-10-25", "2026-10-24T09:00:00Z",
            [
                "berlin": "2026-10-25T00:30:00Z", "new-york": "2026-10-25T06:30:00Z", "none": "2026-10-25T02:30:00Z",
                "kiritimati": "2026-10-24T12:30:00Z",
            ]
        ),
    ])
    func `a segment with a schedule is notified at the local time of each user`(
        day: String, planned: String, times: [String: String]
    ) throws {
        let rules = Self.rules(
            to: "{ segment: { tag: beta } }",
            policy: #"{ type: offers, schedule: { at: day, time: "02:30" } }"#)
        var dryRun = DryRun(RuleSets([try parse(rules)]))
        try DryRunFiles.people(
            Data(
                """
                {"people": {"berlin": {"zone": "Europe/Berlin"}, "new-york": {"zone": "America/New_York"},
                    "kiritimati": {"zone": "Pacific/Kiritimati"}},
                 "segments": {"tag beta": ["berlin", "new-york", "kiritimati", "none"]}}
                """.utf8), name: "people", into: &dryRun)
        var offer = Self.offer
        offer.data = offer.data.merging(["day": .string(day)])
        dryRun.process(offer, at: moment(planned))
        dryRun.advance(to: moment(planned) + .seconds(2 * 86_400))
        var pushed: [String: Timestamp] = [:]
        for prediction in dryRun.predictions where prediction.content?.body != nil {
            #expect(pushed.updateValue(prediction.at, forKey: prediction.user.rawValue) == nil)
        }
        #expect(pushed == times.mapValues(moment))
        #expect(dryRun.refusals.isEmpty)
    }

    @Test func `a preview decides the users that the people file names`() throws {
        var dryRun = DryRun(RuleSets([try parse(Self.rules())]))
        try DryRunFiles.people(
            Data(#"{"people":{"2":{"types":{"offers":false}}},"segments":{"tag city/malaga":["1","2","9"]}}"#.utf8),
            name: "people", into: &dryRun)
        dryRun.process(Self.offer, at: moment("2026-03-15T12:00:00Z"))
        let lines = dryRun.predictions.map { "\($0.user) \($0.decision.readableText) \($0.content?.body ?? "-")" }
        #expect(lines.first == "(segment of tag city/malaga) push (segment) -")
        #expect(lines.dropFirst().allSatisfy { ["1 push (wanted) Two for one", "2 inbox (type-off) -"].contains($0) })
        #expect(dryRun.refusals.isEmpty)
    }
}

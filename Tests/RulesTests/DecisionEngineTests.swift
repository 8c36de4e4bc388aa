import PushProtocol
import Testing

@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// Every decision about a notification to a user.
@Suite struct DecisionEngineTests {
    let now = moment("2026-01-10T12:00:00Z")

    var engine: DecisionEngine {
        DecisionEngine(
            defaults: AppDefaults(
                zone: zone("Europe/Berlin"),
                types: ["chat": .init(), "news": .init(isOn: false), "alarm": .init(isCritical: true)],
                caps: [
                    "hourly": Cap(limit: 4, window: .seconds(3600)), "daily": Cap(limit: 6, window: .seconds(86_400)),
                ]),
            now: now)
    }

    func input(_ change: (inout DecisionInput) -> Void = { _ in }) -> DecisionInput {
        var input = DecisionInput(
            policy: Rule.Policy(type: "chat"), isUserVisible: true, mutes: ["family/1", "thread/2"], thread: "t-2",
            since: now
        )
        change(&input)
        return input
    }

    /// Noon in Berlin is 13:00.
    static let quiet = QuietHours(days: Set(Weekday.allCases), start: clock("13:00"), end: clock("15:30"))

    func judged(_ input: DecisionInput, at moment: Timestamp? = nil, _ change: (inout Person) -> Void = { _ in })
        -> RuleDecision
    {
        var person = Person()
        change(&person)
        var engine = engine
        if let moment { engine.now = moment }
        return engine.decide(input, &person)
    }

    func expect(
        _ decision: RuleDecision, _ answer: RuleDecision.Answer, _ reason: RuleDecision.Cause,
        _ location: SourceLocation = #_sourceLocation
    ) {
        #expect(decision == RuleDecision(answer: answer, reason: reason), sourceLocation: location)
    }

    @Test func `a notification without an obstacle is pushed`() {
        expect(judged(input()), .push, .wanted)
        expect(judged(input { $0.policy.type = nil }), .push, .wanted)
        expect(judged(input { $0.expiresAt = now + .seconds(1) }), .push, .wanted)
    }

    @Test func `an expired notification is not pushed, of any kind`() {
        for type in ["chat", "alarm"] {
            expect(
                judged(
                    input {
                        $0.expiresAt = now; $0.policy.type = type
                    }), .inbox, .expired)
        }
        expect(
            judged(
                input {
                    $0.expiresAt = now; $0.isUserVisible = false; $0.policy.inbox = false
                }), .drop, .expired)
    }

    @Test func `a notification that is not user-visible skips preferences`() {
        expect(
            judged(input { $0.isUserVisible = false }) {
                $0.settings.isOn = false
                $0.settings.quietHours = Self.quiet
            }, .push, .notUserVisible)
    }

    @Test func `critical types are limited by their own cap only`() {
        let alarm = input {
            $0.policy.type = "alarm"; $0.policy.presence = .app; $0.policy.caps = ["hourly"]
        }
        let silenced: (inout Person) -> Void = {
            $0.settings.isOn = false
            $0.settings.types = ["alarm": false]
            $0.settings.mutes = ["thread/2": .init(isMuted: true)]
            $0.settings.quietHours = Self.quiet
            $0.leases = [.init(expiresAt: now + .seconds(10))]
            $0.capHistory = ["hourly": Array(repeating: now, count: 4)]
        }
        expect(judged(alarm, silenced), .push, .critical)
        var person = Person()
        for _ in 0..<20 { expect(engine.decide(alarm, &person), .push, .critical) }
        expect(engine.decide(alarm, &person), .inbox, .criticalLimit)
    }

    @Test func `no other setting overrides the master switch`() {
        expect(
            judged(input()) {
                $0.settings.isOn = false
                $0.settings.types = ["chat": true]
                $0.settings.mutes = ["thread/2": .init(isMuted: false)]
            }, .inbox, .switchedOff)
    }

    @Test(
        arguments: [
            ("chat", nil, true), ("chat", false, false), ("chat", true, true), ("news", nil, false),
            ("news", true, true),
            ("unheard-of", nil, true),
        ] as [(String, Bool?, Bool)])
    func `a type's switch is the user's choice, else the file's default`(type: String, said: Bool?, isOn: Bool) {
        let decision = judged(input { $0.policy.type = type }) { $0.settings.types[type] = said.map(TypeChoice.all) }
        expect(decision, isOn ? .push : .inbox, isOn ? .wanted : .typeOff)
    }

    @Test(
        arguments: [
            (["family/1": true], false), (["thread/2": true], false), (["family/2": true], true),
            (["family/1": true, "thread/2": false], true), (["family/1": false, "thread/2": true], false),
        ] as [([String: Bool], Bool)])
    func `the most specific mute or follow applies`(mutes: [String: Bool], pushed: Bool) {
        let decision = judged(input()) { $0.settings.mutes = mutes.mapValues { .init(isMuted: $0) } }
        expect(decision, pushed ? .push : .inbox, pushed ? .wanted : .muted)
    }

    @Test func `a followed thread is pushed although its type is off, and a mute expires`() {
        expect(
            judged(input()) {
                $0.settings.types = ["chat": false]
                $0.settings.mutes = ["thread/2": .init(isMuted: false)]
            }, .push, .wanted)
        expect(judged(input()) { $0.settings.mutes = ["thread/2": .init(isMuted: true, until: now)] }, .push, .wanted)
        expect(
            judged(input()) { $0.settings.mutes = ["thread/2": .init(isMuted: true, until: now + .seconds(1))] },
            .inbox, .muted)
    }

    @Test func `a user viewing the app is not pushed, if the rule says so`() {
        let lease = Person.Lease(viewing: "t-2", expiresAt: now + .seconds(1))
        expect(judged(input()) { $0.leases = [lease] }, .push, .wanted)
        expect(judged(input { $0.policy.presence = .app }) { $0.leases = [lease] }, .inbox, .present)
        expect(judged(input { $0.policy.presence = .thread }) { $0.leases = [lease] }, .inbox, .viewing)
        let elsewhere = Person.Lease(viewing: "t-3", expiresAt: now + .seconds(1))
        expect(judged(input { $0.policy.presence = .thread }) { $0.leases = [elsewhere] }, .push, .wanted)
        expect(
            judged(
                input {
                    $0.policy.presence = .thread; $0.thread = nil
                }
            ) { $0.leases = [lease] }, .push, .wanted)
        let over = Person.Lease(viewing: "t-2", expiresAt: now)
        expect(judged(input { $0.policy.presence = .app }) { $0.leases = [over] }, .push, .wanted)
        expect(judged(input { $0.policy.presence = .thread }) { $0.leases = [over] }, .push, .wanted)
    }

    @Test func `four an hour are pushed, and the fifth goes to the inbox`() {
        var person = Person()
        var engine = engine
        let capped = input { $0.policy.caps = ["hourly"] }
        for minute in [0, 20, 40, 59] {
            engine.now = now + .seconds(minute * 60)
            expect(engine.decide(capped, &person), .push, .wanted)
        }
        engine.now = now + .seconds(3600) + .milliseconds(-1)
        expect(engine.decide(capped, &person), .inbox, .capped)
        engine.now = now + .seconds(3600)
        expect(engine.decide(capped, &person), .push, .wanted)
        expect(engine.decide(capped, &person), .inbox, .capped)
        #expect(person.capHistory["hourly"]?.count == 4)
    }

    @Test func `every cap of a rule must allow it, and each is charged`() {
        var person = Person()
        var engine = engine
        let both = input { $0.policy.caps = ["hourly", "daily"] }
        for hour in 0..<6 {
            engine.now = now + .seconds(hour * 3600)
            expect(engine.decide(both, &person), .push, .wanted)
        }
        engine.now = now + .seconds(6 * 3600)
        expect(engine.decide(both, &person), .inbox, .capped)
        #expect(person.capHistory["hourly"]?.last == now + .seconds(5 * 3600))
    }

    @Test func `with surplus hold, a notification waits for the last of its caps`() {
        let held = input {
            $0.policy.caps = ["hourly", "daily"]; $0.policy.overflow = .hold
        }
        let full: (inout Person) -> Void = {
            $0.capHistory = ["hourly": (0..<4).map { now + .seconds(-600 * (4 - $0)) }, "daily": [now]]
        }
        expect(judged(held, full), .hold(until: now + .seconds(1200)), .capped)
        expect(
            judged(
                input {
                    $0 = held; $0.expiresAt = now + .seconds(1200)
                }, full), .inbox, .capped)
        expect(
            judged(
                input {
                    $0 = held; $0.policy.holdFor = .seconds(1199)
                }, full), .inbox, .capped)
        let waited = input {
            $0 = held; $0.since = now + .seconds(-86_000)
        }
        expect(judged(waited, full), .inbox, .heldTooLong)
    }

    @Test func `in quiet hours, the rule's mode applies, and only pushes are charged to caps`() {
        let release = moment("2026-01-10T14:30:00Z")
        let cases: [(Rule.Policy.QuietHours, RuleDecision.Answer, RuleDecision.Cause)] = [
            (.hold, .hold(until: release), .quietHours), (.silent, .pushQuietly, .quietHours),
            (.inbox, .inbox, .quietHours), (.bypass, .push, .wanted),
        ]
        for (action, answer, reason) in cases {
            var person = Person()
            person.settings.quietHours = Self.quiet
            expect(
                engine.decide(
                    input {
                        $0.policy.quietHours = action; $0.policy.caps = ["hourly"]
                    }, &person), answer,
                reason)
            let isCharged =
                switch answer {
                case .push, .pushQuietly: true
                case .hold, .digest, .inbox, .drop: false
                }
            #expect((person.capHistory["hourly"] == [now]) == isCharged)
        }
    }

    /// Noon in Berlin is 13:00, when quiet hours begin.
    @Test(
        arguments: [
            (nil, true), ("13:00", false), ("12:15", false), ("12:00", true), ("13:01", true), ("09:00", true),
        ] as [(String?, Bool)])
    func `quiet hours delay a daily digest unless the user chose that time`(chosen: String?, isHeld: Bool) {
        let release = moment("2026-01-10T14:30:00Z")
        let cases: [(Rule.Policy.QuietHours, RuleDecision.Answer, RuleDecision.Cause)] = [
            (.hold, .hold(until: release), .quietHours), (.silent, .pushQuietly, .quietHours),
            (.inbox, .inbox, .quietHours), (.bypass, .push, .wanted),
        ]
        for (action, answer, reason) in cases {
            let digest = input {
                $0.isSummary = true
                $0.policy.quietHours = action
                $0.policy.digest = Digest(close: .at(clock("13:00"), days: .every), say: Rule.MessageTemplate())
            }
            let decision = judged(digest) {
                $0.settings.quietHours = Self.quiet
                $0.settings.digestTime = chosen.map { clock($0) }
            }
            expect(decision, isHeld ? answer : .push, isHeld ? reason : .wanted)
        }
    }

    @Test func `a chosen digest time applies to daily digests only`() {
        let window = input {
            $0.isSummary = true
            $0.policy.digest = Digest(close: .after(.seconds(60)), say: Rule.MessageTemplate())
        }
        for input in [window, input()] {
            let decision = judged(input) {
                $0.settings.quietHours = Self.quiet
                $0.settings.digestTime = clock("13:00")
            }
            expect(decision, .hold(until: moment("2026-01-10T14:30:00Z")), .quietHours)
        }
    }

    @Test func `quiet hours use the user's zone`() {
        let asleep: (inout Person) -> Void = {
            $0.settings.quietHours = Self.quiet
            $0.settings.zone = zone("America/New_York")
        }
        expect(judged(input(), asleep), .push, .wanted)
        expect(
            judged(input(), at: moment("2026-01-10T18:00:00Z"), asleep), .hold(until: moment("2026-01-10T20:30:00Z")),
            .quietHours)
    }

    @Test func `quiet hours delay a notification twice at most`() {
        let person: (inout Person) -> Void = { $0.settings.quietHours = Self.quiet }
        expect(judged(input { $0.quietHolds = 1 }, person), .hold(until: moment("2026-01-10T14:30:00Z")), .quietHours)
        expect(judged(input { $0.quietHolds = 2 }, person), .inbox, .heldTooOften)
        expect(judged(input { $0.expiresAt = now + .seconds(60) }, person), .inbox, .quietHours)
    }
}

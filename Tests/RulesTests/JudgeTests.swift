import PushProtocol
import Testing

@testable import Rules

/// Every decision about a notification to a user.
@Suite struct JudgeTests {
    let now = moment("2026-01-10T12:00:00Z")

    var judge: Judge {
        Judge(
            house: HouseRules(
                zone: zone("Europe/Berlin"),
                types: ["chat": .init(), "news": .init(isOn: false), "alarm": .init(isCritical: true)],
                caps: [
                    "hourly": Cap(limit: 4, window: .seconds(3600)), "daily": Cap(limit: 6, window: .seconds(86_400)),
                ]),
            now: now)
    }

    func matter(_ change: (inout Matter) -> Void = { _ in }) -> Matter {
        var matter = Matter(
            policy: Rule.Policy(type: "chat"), isNoise: true, mutes: ["family/1", "thread/2"], thread: "t-2", since: now
        )
        change(&matter)
        return matter
    }

    /// Noon in Berlin is 13:00.
    static let quiet = QuietHours(days: Set(Weekday.allCases), start: clock("13:00"), end: clock("15:30"))

    func judged(_ matter: Matter, at moment: Timestamp? = nil, _ change: (inout Person) -> Void = { _ in })
        -> Judgement
    {
        var person = Person()
        change(&person)
        var judge = judge
        if let moment { judge.now = moment }
        return judge.judge(matter, &person)
    }

    func expect(
        _ judgement: Judgement, _ answer: Judgement.Answer, _ reason: Judgement.Cause,
        _ location: SourceLocation = #_sourceLocation
    ) {
        #expect(judgement == Judgement(answer: answer, reason: reason), sourceLocation: location)
    }

    @Test func `a notification without an obstacle is pushed`() {
        expect(judged(matter()), .push, .wanted)
        expect(judged(matter { $0.policy.type = nil }), .push, .wanted)
        expect(judged(matter { $0.expiresAt = now + .seconds(1) }), .push, .wanted)
    }

    @Test func `an expired notification is not pushed, of any kind`() {
        for type in ["chat", "alarm"] {
            expect(
                judged(
                    matter {
                        $0.expiresAt = now; $0.policy.type = type
                    }), .inbox, .expired)
        }
        expect(
            judged(
                matter {
                    $0.expiresAt = now; $0.isNoise = false; $0.policy.inbox = false
                }), .drop, .expired)
    }

    @Test func `a notification that is not user-visible skips preferences`() {
        expect(
            judged(matter { $0.isNoise = false }) {
                $0.settings.isOn = false
                $0.settings.quietHours = Self.quiet
            }, .push, .noiseless)
    }

    @Test func `critical types are limited by their own cap only`() {
        let alarm = matter {
            $0.policy.type = "alarm"; $0.policy.presence = .app; $0.policy.caps = ["hourly"]
        }
        let silenced: (inout Person) -> Void = {
            $0.settings.isOn = false
            $0.settings.types = ["alarm": false]
            $0.settings.mutes = ["thread/2": .init(isMuted: true)]
            $0.settings.quietHours = Self.quiet
            $0.leases = [.init(expiresAt: now + .seconds(10))]
            $0.logs = ["hourly": Array(repeating: now, count: 4)]
        }
        expect(judged(alarm, silenced), .push, .critical)
        var person = Person()
        for _ in 0..<20 { expect(judge.judge(alarm, &person), .push, .critical) }
        expect(judge.judge(alarm, &person), .inbox, .criticalStorm)
    }

    @Test func `no other setting overrides the master switch`() {
        expect(
            judged(matter()) {
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
        let judgement = judged(matter { $0.policy.type = type }) { $0.settings.types[type] = said.map(TypeChoice.all) }
        expect(judgement, isOn ? .push : .inbox, isOn ? .wanted : .typeOff)
    }

    @Test(
        arguments: [
            (["family/1": true], false), (["thread/2": true], false), (["family/2": true], true),
            (["family/1": true, "thread/2": false], true), (["family/1": false, "thread/2": true], false),
        ] as [([String: Bool], Bool)])
    func `the most specific mute or follow applies`(mutes: [String: Bool], pushed: Bool) {
        let judgement = judged(matter()) { $0.settings.mutes = mutes.mapValues { .init(isMuted: $0) } }
        expect(judgement, pushed ? .push : .inbox, pushed ? .wanted : .muted)
    }

    @Test func `a followed thread is pushed although its type is off, and a mute expires`() {
        expect(
            judged(matter()) {
                $0.settings.types = ["chat": false]
                $0.settings.mutes = ["thread/2": .init(isMuted: false)]
            }, .push, .wanted)
        expect(judged(matter()) { $0.settings.mutes = ["thread/2": .init(isMuted: true, until: now)] }, .push, .wanted)
        expect(
            judged(matter()) { $0.settings.mutes = ["thread/2": .init(isMuted: true, until: now + .seconds(1))] },
            .inbox, .muted)
    }

    @Test func `a user viewing the app is not pushed, if the rule says so`() {
        let lease = Person.Lease(viewing: "t-2", expiresAt: now + .seconds(1))
        expect(judged(matter()) { $0.leases = [lease] }, .push, .wanted)
        expect(judged(matter { $0.policy.presence = .app }) { $0.leases = [lease] }, .inbox, .present)
        expect(judged(matter { $0.policy.presence = .thread }) { $0.leases = [lease] }, .inbox, .viewing)
        let elsewhere = Person.Lease(viewing: "t-3", expiresAt: now + .seconds(1))
        expect(judged(matter { $0.policy.presence = .thread }) { $0.leases = [elsewhere] }, .push, .wanted)
        expect(
            judged(
                matter {
                    $0.policy.presence = .thread; $0.thread = nil
                }
            ) { $0.leases = [lease] }, .push, .wanted)
        let over = Person.Lease(viewing: "t-2", expiresAt: now)
        expect(judged(matter { $0.policy.presence = .app }) { $0.leases = [over] }, .push, .wanted)
        expect(judged(matter { $0.policy.presence = .thread }) { $0.leases = [over] }, .push, .wanted)
    }

    @Test func `four an hour are pushed, and the fifth goes to the inbox`() {
        var person = Person()
        var judge = judge
        let capped = matter { $0.policy.caps = ["hourly"] }
        for minute in [0, 20, 40, 59] {
            judge.now = now + .seconds(minute * 60)
            expect(judge.judge(capped, &person), .push, .wanted)
        }
        judge.now = now + .seconds(3600) + .milliseconds(-1)
        expect(judge.judge(capped, &person), .inbox, .capped)
        judge.now = now + .seconds(3600)
        expect(judge.judge(capped, &person), .push, .wanted)
        expect(judge.judge(capped, &person), .inbox, .capped)
        #expect(person.logs["hourly"]?.count == 4)
    }

    @Test func `every cap of a rule must allow it, and each is charged`() {
        var person = Person()
        var judge = judge
        let both = matter { $0.policy.caps = ["hourly", "daily"] }
        for hour in 0..<6 {
            judge.now = now + .seconds(hour * 3600)
            expect(judge.judge(both, &person), .push, .wanted)
        }
        judge.now = now + .seconds(6 * 3600)
        expect(judge.judge(both, &person), .inbox, .capped)
        #expect(person.logs["hourly"]?.last == now + .seconds(5 * 3600))
    }

    @Test func `with surplus hold, a notification waits for the last of its caps`() {
        let held = matter {
            $0.policy.caps = ["hourly", "daily"]; $0.policy.surplus = .hold
        }
        let full: (inout Person) -> Void = {
            $0.logs = ["hourly": (0..<4).map { now + .seconds(-600 * (4 - $0)) }, "daily": [now]]
        }
        expect(judged(held, full), .hold(until: now + .seconds(1200)), .capped)
        expect(
            judged(
                matter {
                    $0 = held; $0.expiresAt = now + .seconds(1200)
                }, full), .inbox, .capped)
        expect(
            judged(
                matter {
                    $0 = held; $0.policy.holdFor = .seconds(1199)
                }, full), .inbox, .capped)
        let waited = matter {
            $0 = held; $0.since = now + .seconds(-86_000)
        }
        expect(judged(waited, full), .inbox, .heldTooLong)
    }

    @Test func `in quiet hours, the rule's mode applies, and only pushes are charged to caps`()
    {
        let release = moment("2026-01-10T14:30:00Z")
        let cases: [(Rule.Policy.QuietHours, Judgement.Answer, Judgement.Cause)] = [
            (.hold, .hold(until: release), .quietHours), (.silent, .pushQuietly, .quietHours),
            (.inbox, .inbox, .quietHours), (.bypass, .push, .wanted),
        ]
        for (action, answer, reason) in cases {
            var person = Person()
            person.settings.quietHours = Self.quiet
            expect(
                judge.judge(
                    matter {
                        $0.policy.quietHours = action; $0.policy.caps = ["hourly"]
                    }, &person), answer,
                reason)
            let isCharged =
                switch answer {
                case .push, .pushQuietly: true
                case .hold, .digest, .inbox, .drop: false
                }
            #expect((person.logs["hourly"] == [now]) == isCharged)
        }
    }

    /// Noon in Berlin is 13:00, when quiet hours begin.
    @Test(
        arguments: [
            (nil, true), ("13:00", false), ("12:15", false), ("12:00", true), ("13:01", true), ("09:00", true),
        ] as [(String?, Bool)])
    func `quiet hours delay a daily digest unless the user chose that time`(chosen: String?, isHeld: Bool) {
        let release = moment("2026-01-10T14:30:00Z")
        let cases: [(Rule.Policy.QuietHours, Judgement.Answer, Judgement.Cause)] = [
            (.hold, .hold(until: release), .quietHours), (.silent, .pushQuietly, .quietHours),
            (.inbox, .inbox, .quietHours), (.bypass, .push, .wanted),
        ]
        for (action, answer, reason) in cases {
            let digest = matter {
                $0.isSummary = true
                $0.policy.quietHours = action
                $0.policy.digest = Digest(close: .daily(clock("13:00")), say: Rule.Wording())
            }
            let judgement = judged(digest) {
                $0.settings.quietHours = Self.quiet
                $0.settings.digestTime = chosen.map { clock($0) }
            }
            expect(judgement, isHeld ? answer : .push, isHeld ? reason : .wanted)
        }
    }

    @Test func `a chosen digest time applies to daily digests only`() {
        let window = matter {
            $0.isSummary = true
            $0.policy.digest = Digest(close: .after(.seconds(60)), say: Rule.Wording())
        }
        for matter in [window, matter()] {
            let judgement = judged(matter) {
                $0.settings.quietHours = Self.quiet
                $0.settings.digestTime = clock("13:00")
            }
            expect(judgement, .hold(until: moment("2026-01-10T14:30:00Z")), .quietHours)
        }
    }

    @Test func `quiet hours use the user's zone`() {
        let asleep: (inout Person) -> Void = {
            $0.settings.quietHours = Self.quiet
            $0.settings.zone = zone("America/New_York")
        }
        expect(judged(matter(), asleep), .push, .wanted)
        expect(
            judged(matter(), at: moment("2026-01-10T18:00:00Z"), asleep), .hold(until: moment("2026-01-10T20:30:00Z")),
            .quietHours)
    }

    @Test func `quiet hours delay a notification twice at most`() {
        let person: (inout Person) -> Void = { $0.settings.quietHours = Self.quiet }
        expect(judged(matter { $0.quietHolds = 1 }, person), .hold(until: moment("2026-01-10T14:30:00Z")), .quietHours)
        expect(judged(matter { $0.quietHolds = 2 }, person), .inbox, .heldTooOften)
        expect(judged(matter { $0.expiresAt = now + .seconds(60) }, person), .inbox, .quietHours)
    }
}

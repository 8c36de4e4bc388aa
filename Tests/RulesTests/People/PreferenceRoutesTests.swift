import HTTPTypes
import Postgres
import PushProtocol
import Testing

@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// `/v1/preferences` over HTTP.
@Suite(.timeLimit(.minutes(3))) struct PreferenceRoutesTests {
    static let rules = DecisionStoreTests.rules.replacing(
        "  chat: { about: Messages }",
        with: "  chat: { about: Messages }\n  digest: { about: News, default: off }\n"
            + "  alarm: { about: Help, critical: true }")

    @Test func `a user without choices gets all options with their defaults`() async throws {
        try await RulesHTTP.with(Self.rules) { (http: RulesHTTP) async throws in
            let answer = try await http.send(.get, "/v1/preferences")
            #expect(answer.status == 200)
            let all: JSONValue = ["push": true, "banner": true, "inbox": true]
            let expected: JSONValue = [
                "chosen": [:], "enabled": true, "channels": all, "zone": "Europe/Berlin",
                "types": [
                    "chat": ["about": "Messages", "on": true, "default": true, "critical": false, "channels": all],
                    "digest": [
                        "about": "News", "on": false, "default": false, "critical": false,
                        "channels": ["push": false, "banner": false, "inbox": true],
                    ],
                    "alarm": ["about": "Help", "on": true, "default": true, "critical": true, "channels": all],
                    "direct": [
                        "about": "Messages from the app's team", "on": true, "default": true, "critical": false,
                        "channels": all,
                    ],
                ],
            ]
            #expect(answer.body == expected)
            #expect(try await http.send(.get, "/v1/preferences", user: nil).status == 401)
        }
    }

    @Test func `a patch changes only its members, and null resets a choice`() async throws {
        try await RulesHTTP.with(Self.rules) { (http: RulesHTTP) async throws in
            let patches: [(JSONValue, JSONValue)] = [
                (["types": ["digest": true]], ["types": ["digest": true]]),
                (["enabled": false], ["enabled": false, "types": ["digest": true]]),
                (
                    ["quiet_hours": ["start": "22:00", "end": "07:00", "days": ["sat", "fri"]], "enabled": nil],
                    [
                        "types": ["digest": true],
                        "quiet_hours": ["start": "22:00", "end": "07:00", "days": ["fri", "sat"]],
                    ]
                ),
                (
                    ["quiet_hours": ["end": "08:30"], "types": ["digest": nil, "chat": false]],
                    [
                        "types": ["chat": false],
                        "quiet_hours": ["start": "22:00", "end": "08:30", "days": ["fri", "sat"]],
                    ]
                ),
                (
                    ["quiet_hours": nil, "types": nil, "zone": "Asia/Kolkata", "digest_time": "08:15"],
                    ["zone": "Asia/Kolkata", "digest_time": "08:15"]
                ),
                (
                    ["mutes": ["room/1": [:], "room/2": ["muted": false, "until": "2026-01-10T15:00:00+01:00"]]],
                    [
                        "zone": "Asia/Kolkata", "digest_time": "08:15",
                        "mutes": [
                            "room/1": ["muted": true],
                            "room/2": ["muted": false, "until": "2026-01-10T14:00:00.000Z"],
                        ],
                    ]
                ),
                (["zone": nil, "digest_time": nil, "mutes": ["room/1": nil, "room/2": nil]], [:]),
                (["channels": ["banner": false, "push": true]], ["channels": ["banner": false, "push": true]]),
                (["channels": ["banner": nil]], ["channels": ["push": true]]),
                (["channels": nil, "types": ["chat": ["push": false]]], ["types": ["chat": ["push": false]]]),
                (["types": ["chat": ["inbox": true]]], ["types": ["chat": ["push": false, "inbox": true]]]),
                // A switch for the whole type replaces those for each channel, and the reverse.
                (["types": ["chat": true]], ["types": ["chat": true]]),
                (["types": ["chat": ["banner": false]]], ["types": ["chat": ["banner": false]]]),
                (["types": ["chat": ["banner": nil]]], [:]),
            ]
            for (patch, chosen) in patches {
                let answer = try await http.send(
                    .patch, "/v1/preferences", patch, type: "application/merge-patch+json")
                #expect(answer.status == 200 && answer.body["chosen"] == chosen, "\(patch): \(answer)")
                let seen = try await http.send(.get, "/v1/preferences")
                #expect(seen.body == answer.body)
            }
            #expect(try await http.send(.get, "/v1/preferences", user: "2").body["chosen"] == [:])
        }
    }

    @Test func `an invalid patch is refused with its path and changes nothing`() async throws {
        try await RulesHTTP.with(Self.rules) { (http: RulesHTTP) async throws in
            let wrong: [(JSONValue, Int, String)] = [
                ([], 400, "the body"), (["push": false], 400, "enabled, channels, types"),
                (["enabled": 1], 400, "enabled"),
                (["types": ["chat": "off"]], 400, "types.chat"),
                (["channels": ["email": true]], 400, "push, banner, inbox"),
                (["types": ["chat": ["email": true]]], 400, "push, banner, inbox"),
                (["types": ["alarm": ["inbox": false]]], 422, "a critical type cannot be switched off"),
                (["zone": "CET"], 400, "zone"), (["digest_time": "24:00"], 400, "digest_time"),
                (["quiet_hours": ["start": "22:00"]], 400, "quiet_hours.end is missing"),
                (["quiet_hours": ["start": "22", "end": "07:00"]], 400, "quiet_hours.start"),
                (["quiet_hours": ["start": "22:00", "end": "07:00", "days": []]], 400, "quiet_hours.days"),
                (["quiet_hours": ["start": "22:00", "end": "07:00", "days": ["someday"]]], 400, "quiet_hours.days"),
                (["mutes": ["": [:]]], 400, "mutes"), (["mutes": ["a": ["until": "soon"]]], 400, "mutes.a.until"),
                (["mutes": ["a": ["until": "2026-01-10T11:00:00Z"]]], 422, "mutes.a.until"),
                (["types": ["chta": false]], 422, "the types are chat, digest, direct; did you mean “chat”?"),
                (["types": ["alarm": false]], 422, "a critical type cannot be switched off"),
                (
                    ["mutes": .object(Dictionary(uniqueKeysWithValues: (0...500).map { ("room/\($0)", [:]) }))], 422,
                    "at most 500"
                ),
            ]
            for (patch, status, hint) in wrong {
                let answer = try await http.send(.patch, "/v1/preferences", patch)
                #expect(answer.status == status, "\(patch): \(answer)")
                #expect(answer.body["detail"]?.string?.contains(hint) == true, "\(answer)")
            }
            #expect(try await http.send(.patch, "/v1/preferences", [:], type: "text/plain").status == 415)
            let large: JSONValue = ["zone": .string(String(repeating: "x", count: PreferencesPatch.maximumSize))]
            #expect(try await http.send(.patch, "/v1/preferences", large).status == 413)
            #expect(try await http.send(.get, "/v1/preferences").body["chosen"] == [:])
        }
    }

    @Test func `a mute's name and all settings together have limits in bytes, over any number of requests`()
        async throws
    {
        try await RulesHTTP.with(Self.rules) { (http: RulesHTTP) async throws in
            let most = PreferencesPatch.maximumName
            func mute(_ name: String) async throws -> (status: Int, body: JSONValue) {
                try await http.send(.patch, "/v1/preferences", ["mutes": .object([name: [:]])])
            }
            #expect(try await mute(String(repeating: "a", count: most)).status == 200)
            // One character with many bytes.
            let refused = try await mute("a" + String(repeating: "\u{301}", count: most))
            #expect(refused.status == 400 && refused.body["detail"]?.string?.contains("200 bytes") == true)
            // 500 mutes of 200 bytes, in ten requests, would be more than 100 KB.
            var statuses: [Int] = []
            for part in 0..<10 {
                let names = (0..<50).map { String(repeating: "x", count: most - 6) + "-\(part)-\($0)" }
                let patch: JSONValue = [
                    "mutes": .object(Dictionary(names.map { ($0, [:]) }) { first, _ in first })
                ]
                let answer = try await http.send(.patch, "/v1/preferences", patch)
                statuses.append(answer.status)
                if answer.status == 422 {
                    #expect(answer.body["detail"]?.string?.contains("\(PreferencesPatch.maximumStoredSize)") == true)
                }
            }
            #expect(statuses.first == 200 && statuses.last == 422)
            let size: Int = try await http.pool.query("SELECT octet_length(settings::text) FROM rules.person").single()
            #expect(size < PreferencesPatch.maximumStoredSize * 2)
            #expect(try await http.fixture.handleEvent("e") == [["1"]])
            #expect(try await http.send(.patch, "/v1/preferences", ["mutes": nil]).status == 200)
        }
    }

    @Test func `stored settings above the limit are read and can be reduced`() async throws {
        try await RulesHTTP.with(Self.rules) { (http: RulesHTTP) async throws in
            // 300 KB, as five requests stored before the limit existed.
            var settings = PersonalSettings()
            for name in ["b", "c", "d", "e", "f"] {
                settings.mutes[name + String(repeating: "\u{301}", count: 30_000)] = .init(isMuted: true)
            }
            settings.mutes["room/1"] = .init(isMuted: true)
            try await http.fixture.setPreferences(settings)
            #expect(try await http.fixture.handleEvent("a", users: "[1,2]") == [["2"]])
            #expect(try await http.send(.get, "/v1/preferences").status == 200)
            // Still above the limit, but smaller than before.
            #expect(try await http.send(.patch, "/v1/preferences", ["mutes": ["room/1": nil]]).status == 200)
            #expect(try await http.send(.patch, "/v1/preferences", ["mutes": ["room/2": [:]]]).status == 422)
            #expect(try await http.send(.patch, "/v1/preferences", ["mutes": nil]).status == 200)
            #expect(try await http.send(.get, "/v1/preferences").body["chosen"] == [:])
        }
    }

    @Test func `stored settings with an unknown zone are repaired by the next change`() async throws {
        try await RulesHTTP.with(Self.rules) { (http: RulesHTTP) async throws in
            try await http.fixture.setPreferences(PersonalSettings(isOn: false))
            try await http.pool.execute(
                #"UPDATE rules.person SET settings = settings || '{"zone":"Atlantis/Old_Town"}'"#)
            #expect(try await http.send(.get, "/v1/preferences").body["chosen"] == ["enabled": false])
            #expect(try await http.fixture.handleEvent("a") == [[]])
            #expect(try await RulesDatabase.count("rules.person WHERE dead_reason = 'unreadable'", http.pool) == 1)
            #expect(try await http.send(.patch, "/v1/preferences", ["zone": "Europe/Berlin"]).status == 200)
            #expect(
                try await http.send(.get, "/v1/preferences").body["chosen"]
                    == ["enabled": false, "zone": "Europe/Berlin"])
            #expect(try await RulesDatabase.count("rules.person WHERE dead_at IS NOT NULL", http.pool) == 0)
        }
    }

    @Test func `a change applies to the next decision`() async throws {
        try await RulesHTTP.with(Self.rules) { (http: RulesHTTP) async throws in
            let patches: [(JSONValue, String)] = [
                (["channels": ["push": false]], "0 inbox channel-off"),
                (["channels": nil, "enabled": false], "0 inbox switched-off"),
                (["enabled": nil, "types": ["chat": false]], "0 inbox type-off"),
                (["types": ["chat": ["push": false, "banner": true]]], "0 inbox type-channel-off"),
                (["types": ["chat": ["inbox": false, "push": nil]]], "0 push wanted"),
                (["types": ["chat": ["push": false]]], "0 drop type-channel-off"),
                (["types": ["chat": nil], "channels": ["push": false, "inbox": false]], "0 drop channel-off"),
                (["types": ["chat": false], "channels": nil], "0 inbox type-off"),
                (["mutes": ["room/1": ["muted": false]]], "0 push wanted"),
                (["mutes": ["room/1": ["muted": true, "until": "2026-01-10T13:00:00Z"]]], "0 inbox muted"),
            ]
            for (index, (patch, story)) in patches.enumerated() {
                #expect(try await http.send(.patch, "/v1/preferences", patch).status == 200)
                _ = try await http.fixture.handleEvent("e\(index)")
                let event = "e\(index)"
                let row = try await http.pool.query(
                    """
                    SELECT step || ' ' || answer || ' ' || reason FROM rules.decision JOIN rules.event ON key = event
                    WHERE id = \(event)
                    """)
                #expect(try row.single(String.self) == story)
            }
        }
    }

    @Test func `a notification without the inbox channel is not stored, also when held`() async throws {
        try await RulesHTTP.with(Self.rules) { (http: RulesHTTP) async throws in
            var settings = PersonalSettings(types: ["chat": .each([.inbox: false])])
            try await http.fixture.setPreferences(settings)
            #expect(try await http.fixture.handleEvent("a") == [["1"]])
            #expect(try await http.fixture.inbox() == 0)
            // In quiet hours it is held and pushed at their end; the inbox never gets it.
            settings.quietHours = DecisionStoreTests.night
            try await http.fixture.setPreferences(settings)
            #expect(try await http.fixture.handleEvent("b") == [[]])
            #expect(try await http.fixture.held() == 1)
            http.clock.set(moment("2026-01-10T15:00:00Z"))
            #expect(try await http.fixture.release() == ["1"])
            #expect(try await http.fixture.inbox() == 0)
            // After switching it on again, the inbox gets later notifications.
            try await http.fixture.setPreferences(PersonalSettings(types: ["chat": .each([.push: false])]))
            #expect(try await http.fixture.handleEvent("c") == [[]])
            #expect(try await http.fixture.inbox() == 1)
        }
    }

    @Test func `concurrent changes to different channels of a type are all applied`() async throws {
        try await RulesHTTP.with(Self.rules) { (http: RulesHTTP) async throws in
            for _ in 0..<10 {
                #expect(try await http.send(.patch, "/v1/preferences", ["types": nil]).status == 200)
                try await withThrowingDiscardingTaskGroup { group in
                    for way in ["push", "banner", "inbox"] {
                        group.addTask {
                            let patch: JSONValue = ["types": ["chat": .object([way: false])]]
                            let answer = try await http.send(.patch, "/v1/preferences", patch)
                            #expect(answer.status == 200)
                        }
                    }
                }
                let chosen = try await http.send(.get, "/v1/preferences").body["chosen"]
                #expect(chosen == ["types": ["chat": ["push": false, "banner": false, "inbox": false]]])
            }
        }
    }

    @Test func `concurrent changes to different members are all applied`() async throws {
        try await RulesHTTP.with(Self.rules) { (http: RulesHTTP) async throws in
            try await withThrowingDiscardingTaskGroup { group in
                for room in 0..<40 {
                    group.addTask {
                        let answer = try await http.send(.patch, "/v1/preferences", ["mutes": ["room/\(room)": [:]]])
                        #expect(answer.status == 200)
                    }
                }
            }
            let chosen = try await http.send(.get, "/v1/preferences").body["chosen"]
            #expect(chosen?["mutes"]?.object?.count == 40)
        }
    }

    @Test func `the next change removes expired mutes`() async throws {
        try await RulesHTTP.with(Self.rules) { (http: RulesHTTP) async throws in
            let mute: JSONValue = ["mutes": ["room/1": ["until": "2026-01-10T13:00:00Z"]]]
            #expect(try await http.send(.patch, "/v1/preferences", mute).status == 200)
            http.clock.advance(.seconds(3600))
            #expect(try await http.send(.patch, "/v1/preferences", ["types": ["chat": true]]).status == 200)
            #expect(try await http.send(.get, "/v1/preferences").body["chosen"] == ["types": ["chat": true]])
        }
    }
}

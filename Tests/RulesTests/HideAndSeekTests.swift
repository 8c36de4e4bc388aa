import PushProtocol
import Testing

@testable import Rules

/// The event table in the requirements document of Hide & Seek, row by row.
@Suite struct HideAndSeekTests {
    static let game = "6c0a7c1e-95f1-4c2b-8a4e-0f6d2b1f9a11"
    static let players: JSONValue = [
        ["user": "h1", "role": "hider"], ["user": "s1", "role": "seeker"], ["user": "h2", "role": "hider"],
        ["user": "s2", "role": "seeker"],
    ]

    let rules: RuleSet

    init() throws { rules = try Shipped.ruleSet("hide-and-seek") }

    /// - Parameter isActivity: `true` for Live Activity drafts, `false` for the others.
    func drafts(
        _ type: String, phase: String? = nil, question: JSONValue? = nil, isActivity: Bool = false
    ) throws -> [NotificationDraft] {
        var game: [String: JSONValue] = ["id": .string(HideAndSeekTests.game)]
        game["phase"] = phase.map(JSONValue.string)
        var data: [String: JSONValue] = ["game": .object(game), "players": HideAndSeekTests.players]
        data["question"] = question
        return try rules.evaluate(event(type, app: "hide-and-seek", .object(data)))
            .filter { $0.rule.hasPrefix("activity-") == isActivity }
    }

    /// The document's standard payload.
    func alert(_ body: String, _ data: [String: JSONValue]) -> Content {
        Content(
            title: "Hide & Seek", body: body, sound: "default",
            data: data.merging(["game_id": .string(HideAndSeekTests.game)]) { $1 }, interruptionLevel: .timeSensitive,
            apns: APNsOverride(payload: ["aps": ["content-available": 1]]))
    }

    func expect(_ drafts: [NotificationDraft], _ users: [String], _ content: Content) {
        #expect(drafts.map(\.users) == [users])
        #expect(drafts.map(\.content) == [content])
    }

    @Test func `a started game notifies all players`() throws {
        expect(
            try drafts("game.started"), ["h1", "s1", "h2", "s2"],
            alert("Game on! The hiding phase has begun.", ["event_type": "game_started"]))
    }

    @Test func `the seeking phase notifies all players`() throws {
        expect(
            try drafts("game.phase.changed", phase: "seeking"), ["h1", "s1", "h2", "s2"],
            alert("Seeking phase has begun! Seekers, start hunting.", ["event_type": "phase_changed"]))
    }

    @Test func `a radar question notifies hiders only`() throws {
        let question: JSONValue = [
            "id": "q1", "type": "radar", "status": "answerable", "parameters": ["radius_m": 3000],
        ]
        expect(
            try drafts("game.question.asked", question: question), ["h1", "h2"],
            alert(
                "A 3 km radar question has been asked. Your answer timer is running.",
                [
                    "event_type": "question_asked", "question_id": "q1", "question_type": "radar",
                    "question_status": "answerable", "parameters": ["radius_m": 3000],
                ]))
    }

    @Test func `a thermometer question notifies hiders only`() throws {
        let question: JSONValue = [
            "id": "q2", "type": "thermometer", "status": "in_progress", "parameters": ["min_travel_m": 500],
        ]
        expect(
            try drafts("game.question.asked", question: question), ["h1", "h2"],
            alert(
                "A 500 m thermometer question has started. The seeker is traveling.",
                [
                    "event_type": "question_asked", "question_id": "q2", "question_type": "thermometer",
                    "question_status": "in_progress", "parameters": ["min_travel_m": 500],
                ]))
    }

    @Test func `a locked-in thermometer notifies hiders only`() throws {
        expect(
            try drafts("game.question.answerable", question: ["id": "q2"]), ["h1", "h2"],
            alert(
                "A thermometer question is ready for your answer.",
                ["event_type": "question_answerable", "question_id": "q2"]))
    }

    @Test(arguments: [("yes", "Yes"), ("no", "No"), ("closer", "Closer"), ("farther", "Farther")])
    func `an answer notifies all seekers`(answer: String, said: String) throws {
        expect(
            try drafts(
                "game.question.answered", question: ["id": "q1", "type": "radar", "answer": .string(answer)]),
            ["s1", "s2"],
            alert(
                "Question answered: \(said)! A new exclusion zone is on the map.",
                [
                    "event_type": "question_answered", "question_id": "q1", "question_type": "radar",
                    "answer": .string(answer),
                ]))
    }

    @Test func `the endgame alerts hiders and not seekers`() throws {
        let drafts = try drafts("game.phase.changed", phase: "endgame")
        #expect(drafts.map(\.users) == [["h1", "h2"], ["s1", "s2"]])
        let data: [String: JSONValue] = ["event_type": "phase_changed", "game_id": .string(HideAndSeekTests.game)]
        #expect(
            drafts.map(\.content) == [
                alert("Endgame! Stay where you are.", ["event_type": "phase_changed"]),
                Content(data: data, silent: true),
            ])
    }

    @Test(arguments: [
        ("game.player.joined", nil), ("game.ended", nil), ("game.phase.changed", "hiding"),
        ("game.phase.changed", "ended"),
    ])
    func `joining, hiding and the end send no notification`(type: String, phase: String?) throws {
        #expect(rules.events.contains(type))
        #expect(try drafts(type, phase: phase) == [])
    }

    @Test func `a Live Activity starts, changes and ends with the game, and seekers do not see the endgame`() throws {
        let all = ["h1", "s1", "h2", "s2"]
        let steps: [(String, String?, String, [String])] = [
            ("game.started", nil, "start", all), ("game.phase.changed", "seeking", "update", all),
            ("game.phase.changed", "endgame", "update", ["h1", "h2"]), ("game.ended", nil, "end", all),
        ]
        for (type, phase, event, users) in steps {
            let drafts = try drafts(type, phase: phase, isActivity: true)
            #expect(drafts.map(\.users) == [users])
            let apns = try #require(drafts.first?.content.apns)
            #expect(apns.headers?["apns-push-type"] == "liveactivity")
            #expect(apns.payload?[path: "aps.event"] == .string(event))
            #expect(
                apns.payload?[path: "aps.content-state.phase"]
                    == .string(event == "start" ? "hiding" : event == "end" ? "ended" : phase ?? ""))
            #expect(drafts.first?.scope == (event == "start" ? nil : Self.game))
        }
    }

    @Test func `a question without its parameters is an error`() {
        #expect(
            throws: RenderError(
                rule: "radar-asked", place: "say.body", problem: .missing(path: "question.parameters.radius_m"))
        ) {
            try drafts("game.question.asked", question: ["id": "q1", "type": "radar", "status": "answerable"])
        }
    }
}

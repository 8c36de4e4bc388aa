import PushProtocol
import Testing

@testable import RuleLanguage
@testable import Rules

/// Events about users in a rule file (presence, members, reads), and their errors.
@Suite struct SignalFileTests {
    func file(_ section: String) -> String {
        ruleFile(example: "{ name: Pat, users: [1], at: { user: 1, device: a, room: 7, nothing: null } }")
            .replacing("rules:\n", with: "\(section)\nrules:\n")
    }

    func problems(_ section: String) -> [String] {
        do {
            _ = try RuleFile.parse(file(section), file: "test.yaml")
            return []
        } catch {
            return error.problems.map { "\($0.line) \($0.key): \($0.problem)" }
        }
    }

    func signals(_ section: String, _ data: String) throws -> [Signal] {
        try parse(file(section)).signals(of: event("thing.happened", app: "test", try json(data)))
    }

    @Test func `all keys of the section are read`() throws {
        let data = #"{"at":{"user":7,"device":"phone","room":"r"}}"#
        #expect(
            try signals(
                #"presence: [{ event: thing.happened, user: at.user, device: at.device, viewing: "{{at.room}}", for: 2m }]"#,
                data) == [.present(user("7"), device: "phone", viewing: "r", for: .seconds(120))])
        #expect(
            try signals("presence: [{ event: thing.happened, user: at.user }]", data)
                == [.present(user("7"), device: Signal.onlyDevice, viewing: nil, for: .seconds(45))])
        #expect(
            try signals("presence: [{ event: thing.happened, user: at.user, gone: true }]", data)
                == [.gone(user("7"), device: Signal.onlyDevice)])
        #expect(
            try signals(#"reads: [{ event: thing.happened, user: at.user, thread: "{{at.room}}" }]"#, data)
                == [.read(user("7"), thread: "r")])
        let pattern = "reads: [{ event: thing.happened, user: at.user, data: { at: { device: [phone] } } }]"
        #expect(try signals(pattern, data) == [.read(user("7"), thread: nil)])
        #expect(try signals(pattern, data.replacing("phone", with: "desk")) == [])
    }

    /// The file with an item, which `revoke` needs.
    func revoking(_ section: String) -> String {
        file(section).replacing("to: ", with: "policy: { item: \"{{name}}\" }\n    to: ")
    }

    @Test func `a revocation names an item, and perhaps a user`() throws {
        let data = #"{"name":"Pat","at":{"user":7,"device":"phone","room":"r","nothing":null}}"#
        func revocations(_ keys: String) throws -> [Signal] {
            let text = revoking(#"revoke: [{ event: thing.happened, item: "m/{{at.room}}"\#(keys) }]"#)
            return try parse(text).signals(of: event("thing.happened", app: "test", try json(data)))
        }
        func revoke(_ user: UserID?, keepsInbox: Bool) -> [Signal] {
            [.revoke(item: "m/r", user: user, keepsInbox: keepsInbox, place: "revoke.0")]
        }
        #expect(try revocations("") == revoke(nil, keepsInbox: false))
        #expect(try revocations(", inbox: remove") == revoke(nil, keepsInbox: false))
        #expect(try revocations(", user: at.user, inbox: keep") == revoke(user("7"), keepsInbox: true))
        #expect(try revocations(", data: { at: { device: [desk] } }") == [])
    }

    @Test(arguments: [
        (
            "revoke: [{ event: thing.happened, item: x, inbox: drop }]",
            "revoke.0.inbox: “drop” is not one of remove, keep"
        ),
        ("revoke: [{ event: thing.happened }]", "revoke.0: “item” is missing"),
        (
            "revoke: [{ event: thing.happened, item: x, users: at.user }]",
            "revoke.0.users: unknown key; did you mean “user”?"
        ),
        (
            "revoke: [{ event: thing.happened, item: x, user: at.usr }]",
            "revoke.0.user: no example of the event has “at.usr”; did you mean “at.user”?"
        ),
        (
            "revoke: [{ event: thing.happened, item: x, user: at.nothing }]",
            "revoke.0.user: with an example of thing.happened: at.nothing is not a user id"
        ),
    ])
    func `a mistake in a revocation is reported with its key`(section: String, problem: String) {
        do {
            _ = try RuleFile.parse(revoking(section), file: "test.yaml")
            Issue.record("the file is accepted")
        } catch {
            #expect(error.problems.map { "\($0.key): \($0.problem)" } == [problem])
        }
    }

    @Test func `given no rule with an item, then a revocation is a mistake`() {
        #expect(
            problems("revoke: [{ event: thing.happened, item: x }]") == [
                "6 revoke: no rule has policy.item, so no notification can be revoked; add an item to a rule"
            ])
    }

    @Test(arguments: [
        ("reads: [{ event: thing.happened }]", "6 reads.0: “user” is missing"),
        (
            "reads: [{ event: thing.happend, user: at.user }]",
            "6 reads.0.event: the event “thing.happend” is not known; did you mean “thing.happened”?"
        ),
        (
            "reads: [{ event: thing.happened, user: at.usr }]",
            "6 reads.0.user: no example of the event has “at.usr”; did you mean “at.user”?"
        ),
        (
            "presence: [{ event: thing.happened, user: at.user, for: 1h }]",
            "6 presence.0.for: at most 10m: an open app renews its presence"
        ),
        (
            "presence: [{ event: thing.happened, user: at.user, gone: true, for: 1m }]",
            "6 presence.0.for: not allowed with “gone: true”"
        ),
        (
            "presence: [{ event: thing.happened, user: at.nothing }]",
            "6 presence.0.user: with an example of thing.happened: at.nothing is not a user id"
        ),
        (
            #"reads: [{ event: thing.happened, user: at.user, thread: "{{at.nothing}}" }]"#,
            "6 reads.0.thread: with an example of thing.happened: at.nothing is null in the event"
        ),
    ])
    func `an error is reported with line and key`(section: String, problem: String) {
        #expect(problems(section) == [problem])
    }
}

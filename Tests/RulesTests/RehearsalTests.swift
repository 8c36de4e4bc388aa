import Foundation
import PushProtocol
import Testing

@testable import Rules

/// What rules would do, without doing it.
@Suite struct RehearsalTests {
    static let rules = """
        app: test
        zone: Europe/Berlin
        caps: { hourly: { at-most: 2, within: 1h } }
        events:
          thing.happened: { examples: [{ user: a, name: Pat, room: r }] }
        rules:
          only:
            when: { event: thing.happened }
            to: { users: user }
            say: { body: "{{name}}" }
            policy: { caps: hourly }
        """

    /// Files by name.
    func run(_ arguments: [String], _ files: [String: String], rules: [String: String] = [:]) throws -> RuleTool.Answer
    {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: folder) }
        for (name, text) in rules {
            let file = folder.appending(path: name)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try text.write(to: file, atomically: true, encoding: .utf8)
        }
        let words = arguments.map { $0.replacing("@", with: folder.path) }
        return try #require(RuleTool(words)).run { files[$0].map { Data($0.utf8) } }
    }

    func line(_ id: String, at moment: String, user: String = "a") -> String {
        #"{"specversion":"1.0","id":"\#(id)","source":"/up","type":"thing.happened","at":"\#(moment)","data":{"user":"\#(user)","name":"Pat \#(id)","room":"r"}}"#
    }

    @Test func `every mistake is named, and none is said`() throws {
        let wrong = Self.rules.replacing("caps: hourly }", with: "cap: hourly }")
        let answer = try run(["check", "@/test.yaml"], [:], rules: ["test.yaml": wrong])
        #expect(answer.code == 1)
        #expect(answer.complaints == ["test.yaml:11: rules.only.policy.cap: unknown key; did you mean “caps”?"])
        let right = try run(["check", "@", Shipped.directory], [:], rules: ["test.yaml": Self.rules])
        #expect(right.code == 0, "\(right)")
        #expect(right.lines.count == 1)
    }

    @Test func `a preview tells what everyone would get, and why`() throws {
        let events = (0..<3).map { line("e\($0)", at: "2026-01-10T12:00:0\($0)Z") }.joined(separator: "\n")
        let people = #"{"people":{"b":{"quiet_hours":{"start":"13:00","end":"15:00"}}}}"#
        let answer = try run(
            ["preview", "@/test.yaml", "--events", "e", "--people", "p"],
            ["e": events + "\n\n" + line("e9", at: "2026-01-10T12:30:00Z", user: "b"), "p": people],
            rules: ["test.yaml": Self.rules])
        #expect(answer.code == 0)
        #expect(
            answer.lines.filter { !$0.hasPrefix(" ") } == [
                "2026-01-10T12:00:00.000Z  a  e0  only  push (wanted)",
                "2026-01-10T12:00:01.000Z  a  e1  only  push (wanted)",
                "2026-01-10T12:00:02.000Z  a  e2  only  inbox (capped)",
                "2026-01-10T12:30:00.000Z  b  e9  only  hold until 2026-01-10T14:00:00.000Z (quiet-hours)",
                "2026-01-10T14:00:00.000Z  b  e9  only  push (wanted)",
            ])
        #expect(answer.lines[1] == #"    {"body":"Pat e0","silent":false}"#)
    }

    @Test func `a difference names who would hear more, less, later or otherwise`() throws {
        let events = (0..<5).map { line("e\($0)", at: "2026-01-10T12:00:0\($0)Z") }.joined(separator: "\n")
        func differ(_ change: (String) -> String) throws -> RuleTool.Answer {
            try run(
                ["diff", "@/old/test.yaml", "@/new/test.yaml", "--events", "e"], ["e": events],
                rules: ["old/test.yaml": Self.rules, "new/test.yaml": change(Self.rules)])
        }
        let same = try differ { $0 + "\n" }
        #expect(same == RuleTool.Answer(lines: ["everyone hears the same, at the same time"]))
        let more = try differ { $0.replacing("at-most: 2", with: "at-most: 4") }
        #expect(
            more.lines == [
                "more: 2", "  a  e2  only  never → 2026-01-10T12:00:02.000Z",
                "  a  e3  only  never → 2026-01-10T12:00:03.000Z",
            ])
        #expect(more.code == 1)
        let less = try differ { $0.replacing("at-most: 2", with: "at-most: 1") }
        #expect(less.lines == ["less: 1", "  a  e1  only  2026-01-10T12:00:01.000Z → never"])
        let otherwise = try differ { $0.replacing(#""{{name}}""#, with: #""{{name}}!""#) }
        #expect(otherwise.lines.first == "otherwise: 2")
        let digest = try differ {
            $0.replacing("caps: hourly }", with: "digest: { after: 10m, say: { body: \"{{count}}\" } } }")
                .replacing("say: { body: \"{{name}}\" }", with: "say: {}")
        }
        #expect(digest.lines.first == "more: 1", "\(digest.lines)")
        #expect(digest.lines.contains("less: 2"))
    }

    @Test(arguments: [
        (["check"], "check is not used like this"), (["preview", "x"], "--events is missing"),
        (["diff", "x", "--events", "e"], "diff is not used like this"),
        (["preview", "x", "--event", "e"], "unknown option"),
        (["preview", "x", "--events"], "--events needs a file"),
    ]) func `misuse is told`(arguments: [String], problem: String) throws {
        let answer = try #require(RuleTool(arguments)).run()
        #expect(answer.code == 64)
        #expect(answer.complaints.first?.contains(problem) == true, "\(answer)")
    }

    @Test func `what cannot be read is named by its line`() throws {
        for (text, problem) in [
            ("{}", "e:1: the event has no type"), ("\n[", "e:2:"), (#"{"type":"x","at":"soon"}"#, "“at” is not a time"),
        ] {
            let answer = try run(
                ["preview", "@/test.yaml", "--events", "e"], ["e": text], rules: ["test.yaml": Self.rules])
            #expect(answer.code == 1)
            #expect(answer.complaints.first?.contains(problem) == true, "\(answer)")
        }
    }

    @Test func `serving is not about rule files`() {
        for words in [[], ["--help"], ["healthcheck"]] { #expect(RuleTool(words) == nil) }
    }

    /// A manager's week, as it is rehearsed and as it is served, by the same rules.
    @Test func `a digest is rehearsed as it is served`() throws {
        var rehearsal = Rehearsal(RuleBook([try Shipped.ruleSet("monolite-hr")]))
        func submit(_ id: String) -> DomainEvent {
            event(
                "request.submitted", app: "monolite-hr", id: id,
                [
                    "request": ["id": .string(id), "kind": "vacation"], "worker": ["id": "w", "name": "Ana"],
                    "manager": ["id": "m"],
                ])
        }
        rehearsal.happen(submit("1"), at: moment("2026-02-26T12:00:00Z"))
        rehearsal.happen(submit("2"), at: moment("2026-02-26T13:00:00Z"))
        rehearsal.happen(
            event("request.withdrawn", app: "monolite-hr", ["request": ["id": "1"]]), at: moment("2026-02-27T12:00:00Z")
        )
        rehearsal.advance(to: moment("2026-02-28T12:00:00Z"))
        let pushes = rehearsal.tellings.filter { $0.content != nil }
        #expect(pushes.map(\.at) == [moment("2026-02-27T08:00:00Z"), moment("2026-02-28T08:00:00Z")])
        #expect(pushes.map(\.content?.data?["count"]) == [2, 1])
    }
}

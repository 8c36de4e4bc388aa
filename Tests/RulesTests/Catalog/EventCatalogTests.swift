import ArgumentParser
import Contracts
import Foundation
import PushProtocol
import Testing
import TestSupport

@testable import RuleDryRun
@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// The catalogue's schemas refuse only events that the rules refuse, and its examples are valid.
@Suite struct EventCatalogTests {
    static let shipped = ["baolife", "family-portal", "hide-and-seek", "monolite-hr", "tweet-chat"]

    static func file(_ app: String) throws -> String {
        try String(contentsOfFile: "\(Shipped.directory)/\(app).yaml", encoding: .utf8)
    }

    /// Examples are valid, and pass a dry run.
    static func checkExamples(_ catalog: EventCatalog, _ ruleSet: RuleSet) throws {
        let validator = SchemaValidator(catalog.schema)
        var dryRun = DryRun(RuleSets([ruleSet]))
        for line in catalog.exampleLines.split(separator: "\n") {
            #expect(validator.problems(of: try json(String(line))) == [], "\(line)")
        }
        let events = try DryRunFiles.events(
            catalog.exampleLines, name: "examples", ruleSets: RuleSets([ruleSet]), start: Timestamp(milliseconds: 0))
        #expect(events.count >= catalog.events.count)
        for one in events { dryRun.process(one) }
        #expect(dryRun.refusals == [])
    }

    @Test(arguments: shipped) func `examples of a shipped rule set are valid and pass a dry run`(app: String) throws {
        let text = try Self.file(app)
        let catalog = try EventCatalog(text, file: "\(app).yaml")
        try Self.checkExamples(catalog, try RuleFile.parse(text, file: "\(app).yaml"))
    }

    @Test func `examples of random rule files are valid and pass a dry run`() throws {
        for seed in TestSeed.value..<(TestSeed.value &+ 40) {
            let scenario = RandomScenario(seed: seed)
            let catalog = try EventCatalog(scenario.text, file: "\(scenario.app).yaml")
            try Self.checkExamples(catalog, scenario.rules)
        }
    }

    static let replacements: [JSONValue] = [nil, true, "x", 7, 1.5, [], [:], ["x"], [["id": 1]], ""]

    /// Compares schema and rules on every change of one member of every example.
    static func compare(_ catalog: EventCatalog, _ ruleSet: RuleSet) -> (refused: Int, found: Int) {
        let ruleSets = RuleSets([ruleSet])
        let validator = SchemaValidator(catalog.schema)
        let now = moment("2026-01-01T09:00:00Z")
        var (refused, found) = (0, 0)
        for event in catalog.exampleEvents {
            for change in event.data.mutations(with: replacements) {
                var changed = event
                changed.data = change.value
                let body: JSONValue = [
                    "specversion": "1.0", "id": .string(event.id), "source": .string(event.source),
                    "type": .string(event.type), "subject": .optional(event.subject), "data": change.value,
                    "time": "2026-01-01T09:00:00Z",
                ]
                let isValid = validator.accepts(body)
                switch ruleSets.evaluate(changed, now: now, arrivedAt: now) {
                case .unrenderable:
                    refused += 1
                    if !isValid { found += 1 }
                case .notify(let drafts, _, _):
                    // A rule without a recipient renders no text; the schema asks for the values all the same.
                    let isSilent = ruleSet.rules(for: changed).count > drafts.count
                    #expect(
                        isValid || isSilent,
                        "\(event.type): \(change.path) \(change.change): \(validator.problems(of: body))")
                default: Issue.record("\(event.type)")
                }
            }
        }
        return (refused, found)
    }

    @Test(arguments: shipped) func `the schema refuses only changed events that the rules refuse, and most of those`(
        app: String
    ) throws {
        let text = try Self.file(app)
        let counts = Self.compare(
            try EventCatalog(text, file: "\(app).yaml"), try RuleFile.parse(text, file: "\(app).yaml"))
        #expect(counts.refused > 10)
        #expect(counts.found * 10 >= counts.refused * 8, "\(counts)")
    }

    @Test func `schemas of random rule files refuse only what the rules refuse`() throws {
        var total = (refused: 0, found: 0)
        for seed in TestSeed.value..<(TestSeed.value &+ 20) {
            let scenario = RandomScenario(seed: seed)
            let counts = Self.compare(
                try EventCatalog(scenario.text, file: "\(scenario.app).yaml"), scenario.rules)
            total = (total.refused + counts.refused, total.found + counts.found)
        }
        #expect(total.found * 10 >= total.refused * 8, "\(total)")
    }

    /// Random patterns and values, as in the fuzz tests of the index.
    @Test func `a pattern's schema accepts exactly the objects that match`() {
        let fuzz = RuleFuzzTests()
        var (matching, others) = (0, 0)
        fuzz.run { random in
            let pattern = fuzz.pattern(&random, depth: 0)
            guard let schema = pattern.schema else { return }
            let validator = SchemaValidator(schema)
            for _ in 0..<8 {
                let value: JSONValue = .object(["a": fuzz.value(&random), "b": fuzz.value(&random)])
                guard value.listDepth <= Pattern.Test.depth else { continue }
                let isMatch = pattern.matches(value)
                #expect(validator.accepts(value) == isMatch, "\(pattern) \(value)")
                if isMatch { matching += 1 } else { others += 1 }
            }
        }
        #expect(matching > 0 && others > 0)
    }

    @Test func `fields name their types, the rules that need them, and examples`() throws {
        let catalog = try EventCatalog(Self.file("family-portal"), file: "family-portal.yaml")
        let event = try #require(catalog.events.first { $0.type == "chat.message.created" })
        #expect(event.users.map(\.place) == ["rules.chat-message"])
        let fields = Dictionary(event.fields.map { ($0.path, $0) }) { first, _ in first }
        #expect(fields["sender.name"]?.isAlwaysRequired == true)
        #expect(fields["sender.name"]?.types == "string")
        #expect(fields["sender.name"]?.examples == ["Pat", "Sam"])
        #expect(fields["sender.id"]?.requiredBy == ["rules.chat-message"])
        #expect(fields["sender.id"]?.places.contains("rules.chat-message.to.except") == true)
        #expect(fields["family.id"]?.requiredBy == [])
        #expect(fields["message.text"]?.types == "string")
        #expect(fields["message.thread_id"]?.types == "null or integer")
        #expect(fields["message"] == nil)
        let active = try #require(catalog.events.first { $0.type == "chat.connection.active" })
        #expect(active.users.map(\.place) == ["presence.0"])
    }

    private func schema(_ text: String) throws -> JSONValue {
        try EventCatalog(text, file: "test.yaml").schema
    }

    private func accepts(_ schema: JSONValue, _ data: String, source: String = "/x") throws -> Bool {
        let event: JSONValue = [
            "specversion": "1.0", "id": "1", "source": .string(source), "type": "thing.happened",
            "data": try json(data),
        ]
        return SchemaValidator(schema).accepts(event)
    }

    @Test func `a rule with a condition asks for its fields only where it matches`() throws {
        let schema = try schema(
            ruleFile(
                example: #"{ name: Pat, users: [1], kind: loud }"#,
                when: "{ event: thing.happened, data: { kind: [loud] } }", say: #"body: "{{name}}""#))
        #expect(try accepts(schema, #"{"kind": "loud", "users": [1], "name": "x"}"#))
        #expect(try !accepts(schema, #"{"kind": "loud", "users": [1]}"#))
        #expect(try !accepts(schema, #"{"kind": "loud", "users": [1], "name": null}"#))
        #expect(try accepts(schema, #"{"kind": "calm"}"#))
    }

    @Test func `a condition on the source counts`() throws {
        let schema = try schema(
            ruleFile(
                when: #"{ event: thing.happened, source: [{ prefix: "/hr" }] }"#, say: #"body: "{{name}}""#))
        #expect(try !accepts(schema, #"{"users": [1]}"#, source: "/hr/1"))
        #expect(try accepts(schema, #"{"users": [1]}"#, source: "/other"))
        let text = ruleFile(when: #"{ event: thing.happened, source: [{ prefix: "/hr" }] }"#)
        #expect(try EventCatalog(text, file: "test.yaml").exampleEvents[0].source == "/hr")
    }

    @Test func `an unknown type and a missing attribute are refused`() throws {
        let schema = try schema(ruleFile(say: #"body: "{{event.subject}}""#))
        #expect(try !accepts(schema, #"{"users": [1]}"#))
        let event: JSONValue = ["specversion": "1.0", "id": "1", "source": "/x", "type": "thing.hapened"]
        #expect(!SchemaValidator(schema).accepts(event))
    }

    @Test func `the page lists every event with its fields and an example`() throws {
        for app in Self.shipped {
            let catalog = try EventCatalog(Self.file(app), file: "\(app).yaml")
            let page = catalog.markdown
            for event in catalog.events {
                #expect(page.contains("## \(event.type)\n"))
                for field in event.fields { #expect(page.contains("| `\(field.path)` |")) }
            }
            #expect(page.components(separatedBy: "```json").count == catalog.events.count + 1)
        }
    }

    @Test func `the command writes each format, and reports mistakes with their lines`() throws {
        let path = "\(Shipped.directory)/family-portal.yaml"
        func run(_ arguments: [String]) throws -> Answer {
            try RuleTool.Catalog.parse(arguments).answerOrComplaint(read: { FileManager.default.contents(atPath: $0) })
        }
        #expect(try run(["--rules", path]).lines[0].hasPrefix("# Events of family-portal"))
        #expect(try run(["--rules", path, "--format", "json-schema"]).lines[0].hasPrefix("{\n  \"$schema\""))
        let out = FileManager.default.temporaryDirectory.appending(path: "\(UUID().uuidString).jsonl")
        defer { try? FileManager.default.removeItem(at: out) }
        #expect(try run(["--rules", path, "--format", "examples", "--out", out.path]) == Answer())
        #expect(try String(contentsOf: out, encoding: .utf8).split(separator: "\n").count == 6)
        #expect(try run(["--rules", "/none.yaml"]).code == 1)
        let broken = try RuleTool.Catalog.parse(["--rules", "test.yaml"])
            .answerOrComplaint(read: { _ in Data("app: test".utf8) })
        #expect(broken.code == 1 && broken.complaints.first?.contains("test.yaml:1") == true)
    }
}

extension JSONValue {
    /// The nesting of lists directly in lists.
    fileprivate var listDepth: Int {
        switch self {
        case .array(let elements):
            let inner = elements.map { element in
                if case .array = element { element.listDepth } else { 0 }
            }
            let below = elements.map(\.listDepth).max() ?? 0
            return max(1 + (inner.max() ?? 0), below)
        case .object(let members): return members.values.map(\.listDepth).max() ?? 0
        case .null, .bool, .int, .double, .string: return 0
        }
    }
}

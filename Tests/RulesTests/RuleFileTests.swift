import Foundation
import PushProtocol
import Testing

@testable import RuleLanguage
@testable import Rules

/// Each error in a rule file is reported with file, line, key and a correction.
@Suite struct RuleFileTests {
    func problems(_ text: String, file: String = "test.yaml") -> [String] {
        do {
            _ = try RuleFile.parse(text, file: file)
            return []
        } catch {
            return error.problems.map(\.description)
        }
    }

    @Test func `the shipped files are valid`() throws {
        #expect(
            try RuleDirectory.load(Shipped.directory).ruleSets.keys.map(\.rawValue).sorted() == [
                "baolife", "family-portal", "hide-and-seek", "monolite-hr", "tweet-chat",
            ])
        #expect(problems(ruleFile()) == [])
    }

    struct Mistake: Sendable, CustomTestStringConvertible {
        var text: String
        var problem: String
        var testDescription: String { problem }

        init(_ text: String, _ problem: String) {
            self.text = text
            self.problem = problem
        }
    }

    static let mistakes: [Mistake] = [
        Mistake("", "test.yaml:1: the file is empty"),
        Mistake("a: [", "test.yaml:2: not YAML: while parsing a flow node did not find expected node content"),
        Mistake("app: test\napp: test", "test.yaml:1: “app” occurs more than once"),
        Mistake("[]", "test.yaml:1: expected keys with values, not a list"),
        Mistake("app: test\nevents: {}\nrules: {}\nrulse: 1", "test.yaml:4: rulse: unknown key; did you mean “rules”?"),
        Mistake("app: test\nevents: {}", "test.yaml:1: “rules” is missing"),
        Mistake(
            "app: other\nevents: {}\nrules: {}",
            "test.yaml:1: app: the rules of “other” belong in a file named other.yaml"),
        Mistake(
            "app: Te.st\nevents: {}\nrules: {}",
            "test.yaml:1: app: an app id is 1–63 characters of a–z, 0–9 and “-”, not starting with “-”"),
        Mistake("app: 3\nevents: {}\nrules: {}", "test.yaml:1: app: expected a text, not a number; put it in quotes"),
        Mistake(
            "app: test\nevents: {}\nrules: { a.b: {} }",
            "test.yaml:3: rules.a.b: a rule's name has only letters, digits, “_” and “-”"),
        Mistake(
            "app: test\nevents:\n  x: { example: [] }\nrules: {}",
            "test.yaml:3: events.x.example: unknown key; did you mean “examples”?"),
        Mistake(
            "app: test\nevents:\n  x: { examples: [] }\nrules: {}",
            "test.yaml:3: events.x: “examples” needs at least one example"),
        Mistake(
            "app: test\nevents:\n  x: { examples: [3] }\nrules: {}",
            "test.yaml:3: events.x.examples.0: an example must be an object, like an event's data"),
        Mistake(
            "app: test\nevents:\n  x: { examples: [{ event: 1 }] }\nrules: {}",
            "test.yaml:3: events.x.examples.0: “event” is reserved for the event's attributes; rename this member"
        ),
        Mistake(
            ruleFile(when: "event: thing.hapened"),
            "test.yaml:9: rules.only.when.event: the event “thing.hapened” is not known; did you mean “thing.happened”?"
        ),
        Mistake(
            ruleFile(when: "event: [thing.happened, x]"),
            "test.yaml:9: rules.only.when.event.1: the event “x” is not known; describe it under “events”"),
        Mistake(
            ruleFile(when: "{ event: thing.happened, date: {} }"),
            "test.yaml:9: rules.only.when.date: unknown key; did you mean “data”?"),
        Mistake(
            ruleFile(when: "{ event: thing.happened, data: { name: Pat } }"),
            "test.yaml:9: rules.only.when.data.name: expected a list of accepted values, such as [value]"),
        Mistake(
            ruleFile(when: "{ event: thing.happened, data: { nmae: [Pat] } }"),
            "test.yaml:9: rules.only.when.data.nmae: no example of the event has “nmae”; did you mean “name”?"),
        Mistake(
            ruleFile(when: "{ event: thing.happened, data: { name: [{ prefx: P }] } }"),
            "test.yaml:9: rules.only.when.data.name.0.prefx: unknown operator; did you mean “prefix”?"),
        Mistake(
            ruleFile(when: "{ event: thing.happened, data: { name: [{ exists: yes }] } }"),
            "test.yaml:9: rules.only.when.data.name.0.exists: exists is true or false, not a text"),
        Mistake(
            ruleFile(when: #"{ event: thing.happened, data: { name: [{ numeric: [">"] }] } }"#),
            #"test.yaml:9: rules.only.when.data.name.0.numeric: numeric takes pairs of a comparison and a number: [">", 0, "<=", 5]"#
        ),
        Mistake(
            ruleFile(when: #"{ event: thing.happened, data: { name: [{ numeric: ["=>", 3] }] } }"#),
            "test.yaml:9: rules.only.when.data.name.0.numeric.0: “=>” is not one of =, <, <=, >, >="),
        Mistake(
            ruleFile(when: #"{ event: thing.happened, data: { name: [{ wildcard: "a**" }] } }"#),
            #"test.yaml:9: rules.only.when.data.name.0.wildcard: “a**” is not a wildcard: no two * in a row, and \ only before * or \"#
        ),
        Mistake(
            ruleFile(when: "{ event: thing.happened, data: { name: [{ cidr: 10.0.0.0/33 }] } }"),
            "test.yaml:9: rules.only.when.data.name.0.cidr: “10.0.0.0/33” is not a block of addresses such as 10.0.0.0/24 or 2001:db8::/32"
        ),
        Mistake(
            ruleFile(when: "{ event: thing.happened, data: { name: [{ prefix: a, suffix: b }] } }"),
            "test.yaml:9: rules.only.when.data.name.0: expected one operator, such as {prefix: …}"),
        Mistake(
            ruleFile(when: "{ event: thing.happened, data: { name: [{ anything-but: { cidr: 10.0.0.0/8 } }] } }"),
            "test.yaml:9: rules.only.when.data.name.0.anything-but: anything-but takes values, or one of prefix, suffix, equals-ignore-case, wildcard"
        ),
        Mistake(
            ruleFile(when: "{ event: thing.happened, data: { name: [{ anything-but: { prefix: a, suffix: b } }] } }"),
            "test.yaml:9: rules.only.when.data.name.0.anything-but: anything-but takes values, or one of prefix, suffix, equals-ignore-case, wildcard"
        ),
        Mistake(
            ruleFile(when: "{ event: thing.happened, data: { name: [] } }"),
            "test.yaml:9: rules.only.when.data.name: the list is empty"),
        Mistake(
            ruleFile(when: "{ event: thing.happened, data: { name: [Sam] } }"),
            "test.yaml:8: rules.only.when: none of the event's examples matches"),
        Mistake(
            ruleFile(to: "{ user: users }"), "test.yaml:10: rules.only.to.user: unknown key; did you mean “users”?"),
        Mistake(
            ruleFile(to: "{ users: userz }"),
            "test.yaml:10: rules.only.to.users: no example of the event has “userz”; did you mean “users”?"),
        Mistake(
            ruleFile(to: #"{ users: "{{users}}" }"#),
            "test.yaml:10: rules.only.to.users: “{{users}}” is not a path; write members joined by dots, without braces"
        ),
        Mistake(
            ruleFile(to: "{ users: users, where: { users: [1] } }"),
            "test.yaml:10: rules.only.to.where: set “id” to the field of each object that has the user id"),
        Mistake(
            ruleFile(to: "{ users: name, id: x }"),
            "test.yaml:10: rules.only.to.id: no example of the event has “name.x”"),
        Mistake(
            ruleFile(example: "{ name: Pat, users: [{ id: 1 }] }"),
            "test.yaml:10: rules.only.to.users: with an example of thing.happened: users.0 is not a user id"),
        Mistake(
            ruleFile(say: "titel: Hello"), "test.yaml:12: rules.only.say.titel: unknown key; did you mean “title”?"),
        Mistake(
            ruleFile(say: #"body: "Hi {{nmae}}""#),
            "test.yaml:12: rules.only.say.body: no example of the event has “nmae”; did you mean “name”?"),
        Mistake(
            ruleFile(say: "body: {{name}}"),
            "test.yaml:12: rules.only.say.body: a text that begins with {{ must be quoted"),
        Mistake(
            ruleFile(say: "body: 3"),
            "test.yaml:12: rules.only.say.body: expected a text, not a number; put it in quotes"),
        Mistake(
            ruleFile(say: "body:"),
            "test.yaml:12: rules.only.say.body: expected a text, not nothing; put it in quotes"),
        Mistake(
            ruleFile(say: #"body: "{{#name}}""#),
            "test.yaml:12: rules.only.say.body: the section {{#name}} is never closed"),
        Mistake(
            ruleFile(say: #"body: "{{exceprt(name)}}""#),
            "test.yaml:12: rules.only.say.body: there is no filter “exceprt”; did you mean “excerpt”?"),
        Mistake(
            ruleFile(say: #"body: "{{km(name)}}""#),
            "test.yaml:12: rules.only.say.body: with an example of thing.happened: name is not a number"),
        Mistake(
            ruleFile(say: #"{ body: B, data: { a: { b: "{{km(name)}}" } } }"#),
            "test.yaml:12: rules.only.say.data.a.b: with an example of thing.happened: name is not a number"),
        Mistake(
            ruleFile(say: "{ body: B, image: http://img.example/a.png }"),
            "test.yaml:12: rules.only.say.image: with an example of thing.happened: expected an https URL, because phones load no other"
        ),
        Mistake(
            ruleFile(say: #"{ body: B, image: https://img.example/a.png, languages: { de: { image: "{{name}}" } } }"#),
            "test.yaml:12: rules.only.say.languages.de.image: with an example of thing.happened: expected an https URL, because phones load no other"
        ),
        Mistake(
            ruleFile(say: "title: \(String(repeating: "a", count: 101))"),
            "test.yaml:12: rules.only.say.title: the text has 101 characters; at most 100 are shown"),
        Mistake(
            ruleFile(say: "data: { a: 1 }"),
            "test.yaml:7: rules.only: an alert needs a title or a body under “say”; or use “as: silent” under “how”"
        ),
        Mistake(
            ruleFile(how: "as: silent"),
            "test.yaml:7: rules.only: a silent push shows nothing: it cannot have a title, a subtitle or a body"),
        Mistake(
            ruleFile(say: "data: { a: 1 }", how: "{ as: silent, sound: default }"),
            "test.yaml:7: rules.only: a silent push cannot have a sound or an interruption level"),
        Mistake(
            ruleFile(how: "as: slient"),
            "test.yaml:14: rules.only.how.as: “slient” is not one of \(Rule.DeliveryOptions.Kind.allCases.map(\.rawValue).joined(separator: ", ")); did you mean “silent”?"
        ),
        Mistake(
            ruleFile(how: "lane: fast"), "test.yaml:14: rules.only.how.lane: “fast” is not one of interactive, bulk"),
        Mistake(
            ruleFile(how: "interruption-level: time_sensitive"),
            "test.yaml:14: rules.only.how.interruption-level: “time_sensitive” is not one of passive, active, time-sensitive, critical; did you mean “time-sensitive”?"
        ),
        Mistake(
            ruleFile(how: "expires-after: 24"),
            "test.yaml:14: rules.only.how.expires-after: expected a duration such as 90s, 30m, 24h or 7d"
        ),
        Mistake(
            ruleFile(how: "badge: many"),
            "test.yaml:14: rules.only.how.badge: a badge is a whole number from 0 to 99999, one variable in quotes, or unread"
        ),
        Mistake(
            ruleFile(how: #"badge: "{{name}}""#),
            "test.yaml:14: rules.only.how.badge: with an example of thing.happened: name is not a whole number from 0 to 99999"
        ),
        Mistake(
            ruleFile(how: "apns: { header: {} }"),
            "test.yaml:14: rules.only.how.apns.header: unknown key; did you mean “headers”?"),
        Mistake(
            ruleFile(how: "apns: { headers: { apns-id: x } }"),
            "test.yaml:14: rules.only.how.apns.headers.apns-id: only apns-* headers except apns-id can be set here"
        ),
        Mistake(
            ruleFile(how: #"fcm: { message: { android: { collapse_key: "{{nmae}}" } } }"#),
            "test.yaml:14: rules.only.how.fcm.message.android.collapse_key: no example of the event has “nmae”; did you mean “name”?"
        ),
    ]

    @Test(arguments: mistakes) func `an error is reported with line and key`(mistake: Mistake) {
        #expect(problems(mistake.text) == [mistake.problem])
    }

    @Test func `YAML aliases that expand exponentially are refused`() {
        // Thirty lines that expand to 4^30 values.
        let lines = (1...30).map { "a\($0): &a\($0) [*a\($0 - 1), *a\($0 - 1), *a\($0 - 1), *a\($0 - 1)]" }
        let found = problems((["a0: &a0 1"] + lines).joined(separator: "\n"))
        #expect(found == ["test.yaml:1: its aliases expand to more than 2000000 nodes"])
    }

    @Test func `all errors of a file are reported at once, in its order`() {
        let found = problems(ruleFile(to: "{ users: userz }", say: "titel: x", how: "lane: fast"))
        #expect(found.map { $0.split(separator: ":")[1] } == ["10", "12", "14"])
    }

    @Test func `all errors of all files are reported at once`() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        #expect(throws: RuleFileError.self) { try RuleDirectory.load(folder.path) }
        try Data(ruleFile().utf8).write(to: folder.appending(path: "test.yaml"))
        #expect(try RuleDirectory.load(folder.path).ruleSets.count == 1)
        try Data("app: a".utf8).write(to: folder.appending(path: "a.yaml"))
        try Data([0xff, 0xfe]).write(to: folder.appending(path: "b.yaml"))
        try Data().write(to: folder.appending(path: "notes.txt"))
        try Data().write(to: folder.appending(path: ".hidden"))
        let error = #expect(throws: RuleFileError.self) { try RuleDirectory.load(folder.path) }
        #expect(
            error?.description == """
                the rule files have 4 errors:
                  a.yaml:1: “events” is missing
                  a.yaml:1: “rules” is missing
                  b.yaml:1: the file is not UTF-8
                  notes.txt:1: not a rule file; this folder takes only files named <app>.yaml
                """)
    }

    @Test func `equal texts have equal versions, and different texts different ones`() throws {
        let one = try parse(ruleFile()).version
        #expect(try parse(ruleFile()).version == one)
        #expect(try parse(ruleFile() + "\n# a remark").version != one)
    }
}

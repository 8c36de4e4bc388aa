import FoundationEssentials
import PushProtocol
import Testing
import Yams

@testable import Rules

/// Event patterns as documented in Amazon EventBridge: comparison operators.
@Suite struct PatternTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var pattern: String
        var matching: [String]
        var refusing: [String]
        var testDescription: String { pattern }
    }

    static let cases: [Case] = [
        Case(
            pattern: "{ a: [x, 3, null, true] }",
            matching: [
                #"{"a":"x"}"#, #"{"a":3}"#, #"{"a":3.0}"#, #"{"a":null}"#, #"{"a":true}"#, #"{"a":"x","b":1}"#,
            ],
            refusing: [#"{"a":"X"}"#, #"{"a":"3"}"#, #"{"a":false}"#, #"{"b":"x"}"#, "{}", #"{"a":{"x":1}}"#]),
        Case(
            pattern: "{ a: [x], b: { c: [y] } }", matching: [#"{"a":"x","b":{"c":"y"}}"#],
            refusing: [#"{"a":"x"}"#, #"{"a":"x","b":"y"}"#, #"{"b":{"c":"y"}}"#]),
        Case(
            pattern: "{ a: [{ prefix: us- }] }", matching: [#"{"a":"us-east"}"#, #"{"a":["eu-1","us-2"]}"#],
            refusing: [#"{"a":"US-east"}"#, #"{"a":"u"}"#, #"{"a":7}"#, #"{"a":[]}"#]),
        Case(
            pattern: "{ a: [{ prefix: { equals-ignore-case: us- } }] }", matching: [#"{"a":"US-east"}"#],
            refusing: [#"{"a":"eu"}"#]),
        Case(
            pattern: "{ a: [{ suffix: .png }] }", matching: [#"{"a":"x.png"}"#, #"{"a":".png"}"#],
            refusing: [#"{"a":"x.PNG"}"#, #"{"a":"png"}"#]),
        Case(
            pattern: "{ a: [{ suffix: { equals-ignore-case: .png } }] }", matching: [#"{"a":"x.PNG"}"#],
            refusing: [#"{"a":"x.jpg"}"#]),
        Case(
            pattern: "{ a: [{ equals-ignore-case: alice }] }", matching: [#"{"a":"Alice"}"#],
            refusing: [#"{"a":"bob"}"#, #"{"a":null}"#]),
        Case(
            pattern: #"{ a: [{ wildcard: "dir/*/f*.png" }] }"#,
            matching: [#"{"a":"dir/x/y/f1.png"}"#, #"{"a":"dir//f.png"}"#],
            refusing: [#"{"a":"dir/f.png"}"#, #"{"a":"dir/x/f.jpg"}"#]),
        Case(
            pattern: #"{ a: [{ wildcard: "a\\*b*" }] }"#, matching: [#"{"a":"a*bc"}"#], refusing: [#"{"a":"axbc"}"#]),
        Case(
            pattern: "{ a: [{ anything-but: x }] }", matching: [#"{"a":"y"}"#, #"{"a":null}"#, #"{"a":["x","y"]}"#],
            refusing: [#"{"a":"x"}"#, "{}", #"{"a":["x"]}"#, #"{"a":[]}"#]),
        Case(
            pattern: "{ a: [{ anything-but: [1, 2] }] }", matching: [#"{"a":3}"#],
            refusing: [#"{"a":1}"#, #"{"a":2.0}"#]),
        Case(
            pattern: "{ a: [{ anything-but: { prefix: [init, exit] } }] }", matching: [#"{"a":"run"}"#],
            refusing: [#"{"a":"initial"}"#, #"{"a":"exited"}"#]),
        Case(
            pattern: "{ a: [{ anything-but: { suffix: .txt } }] }", matching: [#"{"a":"a.png"}"#],
            refusing: [#"{"a":"a.txt"}"#]),
        Case(
            pattern: "{ a: [{ anything-but: { equals-ignore-case: [ALICE] } }] }", matching: [#"{"a":"bob"}"#],
            refusing: [#"{"a":"Alice"}"#]),
        Case(
            pattern: #"{ a: [{ anything-but: { wildcard: "*/lib/*" } }] }"#, matching: [#"{"a":"/bin/x"}"#],
            refusing: [#"{"a":"/usr/lib/x"}"#]),
        Case(
            pattern: #"{ a: [{ numeric: [">", 0, "<=", 5] }] }"#, matching: [#"{"a":0.5}"#, #"{"a":5}"#],
            refusing: [#"{"a":0}"#, #"{"a":5.1}"#, #"{"a":"3"}"#]),
        Case(
            pattern: #"{ a: [{ numeric: ["=", 301.8] }, { numeric: [">=", 1000] }] }"#,
            matching: [#"{"a":301.8}"#, #"{"a":1000}"#], refusing: [#"{"a":999}"#]),
        Case(
            pattern: "{ a: [{ exists: true }] }", matching: [#"{"a":null}"#, #"{"a":""}"#, #"{"a":[0]}"#],
            refusing: ["{}", #"{"a":[]}"#, #"{"a":{"b":1}}"#]),
        Case(
            pattern: "{ a: { b: [{ exists: false }] } }", matching: ["{}", #"{"a":{}}"#, #"{"a":3}"#, #"{"a":[]}"#],
            refusing: [#"{"a":{"b":null}}"#]),
        Case(
            pattern: "{ a: [{ cidr: 10.0.0.0/23 }] }", matching: [#"{"a":"10.0.0.1"}"#, #"{"a":"10.0.1.255"}"#],
            refusing: [#"{"a":"10.0.2.0"}"#, #"{"a":"10.0.0"}"#, #"{"a":"::1"}"#, #"{"a":"10.0.0.256"}"#]),
        Case(
            pattern: #"{ a: [{ cidr: "2001:db8::/33" }] }"#,
            matching: [#"{"a":"2001:db8::1"}"#, #"{"a":"2001:DB8:7fff::"}"#],
            refusing: [#"{"a":"2001:db8:8000::"}"#, #"{"a":"2001:db8"}"#, #"{"a":"1::2::3"}"#]),
        Case(
            pattern: #"{ c: [z], $or: [{ a: [x] }, { b: [{ numeric: ["<", 0] }] }] }"#,
            matching: [#"{"c":"z","a":"x"}"#, #"{"c":"z","b":-1,"a":"q"}"#],
            refusing: [#"{"a":"x"}"#, #"{"c":"z"}"#, #"{"c":"z","b":1}"#]),
        Case(
            pattern: "{ people: { first: [Anna], last: [Jones] } }",
            matching: [#"{"people":[{"first":"Bo","last":"X"},{"first":"Anna","last":"Jones"}]}"#],
            refusing: [#"{"people":[{"first":"Anna","last":"Smith"},{"first":"John","last":"Jones"}]}"#]),
        Case(
            pattern: "{ answer: [yes] }", matching: [#"{"answer":"yes"}"#], refusing: [#"{"answer":true}"#]),
    ]

    @Test(arguments: cases) func `a pattern matches its matching events only`(example: Case) throws {
        let pattern = try pattern(example.pattern)
        for text in example.matching { #expect(pattern.matches(try json(text)), "\(text)") }
        for text in example.refusing { #expect(!pattern.matches(try json(text)), "\(text)") }
    }

    @Test func `large integers are distinguished`() throws {
        let pattern = try pattern("{ a: [9007199254740993] }")
        #expect(pattern.matches(["a": 9_007_199_254_740_993]))
        #expect(!pattern.matches(["a": 9_007_199_254_740_992]))
    }

    @Test func `only rules for the event's type are tried`() throws {
        let rules = (0..<1000).map { index in
            Rule(
                name: "r\(index)", when: .init(events: ["type.\(index)"], data: nil, attributes: nil),
                to: [.init(users: "users", except: [])], say: .init(), how: .init())
        }
        let ruleSet = RuleSet(app: AppID(rawValue: "test")!, version: .init(), events: [], rules: rules)
        #expect(ruleSet.rules(for: event("type.7", ["users": [1]])).map(\.name) == ["r7"])
        #expect(ruleSet.rules(for: event("type.x", ["users": [1]])).isEmpty)
    }

    @Test func `a rule can match an event's source and subject`() throws {
        let ruleSet = try parse(
            ruleFile(when: "{ event: thing.happened, source: [{ prefix: /hr }], subject: [{ exists: false }] }"))
        #expect(ruleSet.rules(for: event("thing.happened", source: "/hr/leave", [:])).count == 1)
        #expect(ruleSet.rules(for: event("thing.happened", source: "/it", [:])).isEmpty)
        #expect(ruleSet.rules(for: event("thing.happened", source: "/hr", subject: "s", [:])).isEmpty)
    }

    private func pattern(_ yaml: String) throws -> Pattern {
        let reader = RuleFileReader(file: "pattern")
        let pattern = reader.pattern(Field(node: try #require(try Yams.compose(yaml: yaml)), path: "", line: 1))
        #expect(reader.problems == [])
        return try #require(pattern)
    }
}

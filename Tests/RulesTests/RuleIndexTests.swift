import PushProtocol
import Testing
import TestSupport
import Yams

@testable import RuleLanguage
@testable import Rules

/// The rule index: an event is tried on all matching rules, and few others.
@Suite struct RuleIndexTests {
    /// A rule set with one rule for each pattern, in rule file syntax.
    func ruleSet(_ patterns: [String]) throws -> RuleSet {
        let reader = RuleFileReader(file: "test.yaml")
        let rules = try patterns.enumerated().map { number, text in
            let node = try #require(try Yams.compose(yaml: text))
            let pattern = try #require(reader.pattern(reader.field(node, "data", line: 1)), "\(text)")
            return Rule(
                name: "r\(number)", when: .init(events: ["thing.happened"], data: pattern, attributes: nil), to: [],
                say: .init(), how: .init())
        }
        #expect(reader.problems == [])
        return RuleSet(app: AppID(rawValue: "test")!, version: DerivedID.namespace, events: [], rules: rules)
    }

    func tried(_ ruleSet: RuleSet, _ data: String) throws -> [String] {
        ruleSet.candidates(for: event("thing.happened", app: "test", try json(data))).map(\.name)
    }

    @Test func `a thousand rules for other values are not tried`() throws {
        let ruleSet = try ruleSet((0..<1000).map { #"{ kind: [chat], b: { c: [room-\#($0)] } }"# })
        #expect(try tried(ruleSet, #"{"kind":"chat","b":{"c":"room-7"}}"#) == ["r7"])
        #expect(try tried(ruleSet, #"{"kind":"chat","b":[{"c":["room-7","x"]},{"c":"room-9"}]}"#) == ["r7", "r9"])
        #expect(try tried(ruleSet, #"{"kind":"chat"}"#) == [])
        #expect(try tried(ruleSet, #"{"kind":"chat","b":{"c":null}}"#) == [])
    }

    @Test func `rules for other prefixes, suffixes and spellings are not tried`() throws {
        let ruleSet = try ruleSet(
            (0..<500).map { #"{ e: [{ prefix: "p\#($0)/" }] }"# }
                + (0..<500).map { #"{ e: [{ suffix: ".s\#($0)" }] }"# }
                + (0..<500).map { #"{ e: [{ equals-ignore-case: "W\#($0)" }] }"# }
                + (0..<500).map { #"{ e: [{ wildcard: "w\#($0)/*/x" }] }"# })
        #expect(try tried(ruleSet, #"{"e":"p12/and.s34"}"#) == ["r12", "r534"])
        #expect(try tried(ruleSet, #"{"e":"w3"}"#) == ["r1003"])
        #expect(try tried(ruleSet, #"{"e":"w3/y/x"}"#) == ["r1503"])
        #expect(try tried(ruleSet, #"{"e":5}"#) == [])
    }

    @Test func `a rule with alternatives is found by each of them`() throws {
        let ruleSet = try ruleSet(
            (0..<100).map { #"{ $or: [{ a: [\#($0)] }, { b: { c: [x\#($0)] } }] }"# } + [
                #"{ a: [{ exists: false }] }"#, #"{ a: [1, { exists: false }] }"#, #"{ a: [{ numeric: [">", 5] }] }"#,
            ])
        #expect(try tried(ruleSet, #"{"a":3.0}"#) == ["r3", "r100", "r101", "r102"])
        #expect(try tried(ruleSet, #"{"b":{"c":"x4"}}"#) == ["r4", "r100", "r101"])
    }

    @Test func `for random patterns and events, every matching rule is tried`() throws {
        var random = SplitMix(seed: 5)
        func word() -> String { ["x", "y", "X", "xy", "1", "true", "null", "1.0"].randomElement(using: &random)! }
        func matcher() -> String {
            switch Int.random(in: 0..<12, using: &random) {
            case 0: #"{ prefix: "\#(word())" }"#
            case 1: #"{ suffix: "\#(word())" }"#
            case 2: #"{ equals-ignore-case: "\#(word())" }"#
            case 3: #"{ wildcard: "*\#(word())*" }"#
            case 4: #"{ wildcard: "\#(word())*" }"#
            case 5: "{ exists: \(Bool.random(using: &random)) }"
            case 6: #"{ anything-but: ["\#(word())"] }"#
            case 7: #"{ prefix: { equals-ignore-case: "\#(word())" } }"#
            case 8: #"{ numeric: [">=", 1] }"#
            case 9: #"{ anything-but: { prefix: "\#(word())" } }"#
            case 10: #"{ cidr: "10.0.0.0/8" }"#
            default: word()
            }
        }
        func pattern(_ depth: Int) -> String {
            var fields = ["a", "b", "e"].filter { _ in Bool.random(using: &random) }.map { name in
                depth > 0 && Bool.random(using: &random)
                    ? "\(name): \(pattern(depth - 1))" : "\(name): [\(matcher()), \(matcher())]"
            }
            if fields.isEmpty { fields = ["a: [\(matcher())]"] }
            if depth > 0, Int.random(in: 0..<4, using: &random) == 0 {
                fields.append("$or: [\(pattern(depth - 1)), \(pattern(depth - 1))]")
            }
            return "{ \(fields.joined(separator: ", ")) }"
        }
        func value(_ depth: Int) -> String {
            switch Int.random(in: 0..<(depth > 0 ? 7 : 3), using: &random) {
            case 0: return #""\#(word())""#
            case 1, 2: return ["1", "1.0", "true", "null", "2"].randomElement(using: &random)!
            case 3: return "[\(value(depth - 1)), \(value(depth - 1))]"
            default: return #"{"a":\#(value(depth - 1)),"b":\#(value(depth - 1)),"e":\#(value(depth - 1))}"#
            }
        }
        let ruleSet = try ruleSet((0..<300).map { _ in pattern(2) })
        var matches = 0
        for _ in 0..<500 {
            let happened = event("thing.happened", app: "test", try json(value(3)))
            let tried = Set(ruleSet.candidates(for: happened).map(\.name))
            for rule in ruleSet.rules where rule.when.holds(happened) {
                matches += 1
                #expect(tried.contains(rule.name), "\(rule.when) \(happened.data)")
            }
        }
        #expect(matches > 1000)
    }
}

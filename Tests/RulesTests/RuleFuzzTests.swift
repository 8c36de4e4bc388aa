import Foundation
import PushProtocol
import Testing
import TestSupport

@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// Fuzzing with random events and rule files: rules neither crash nor hang, and equal input gives equal results.
///
/// Each test runs for one second, or for `HELIOGRAPH_FUZZ_SECONDS`. `HELIOGRAPH_FUZZ_SEED` sets the first seed.
@Suite(.timeLimit(.minutes(60))) struct RuleFuzzTests {
    static let seconds = ProcessInfo.processInfo.environment["HELIOGRAPH_FUZZ_SECONDS"].flatMap(Double.init) ?? 1
    static let seed = ProcessInfo.processInfo.environment["HELIOGRAPH_FUZZ_SEED"].flatMap(UInt64.init) ?? 1

    /// Runs `body` until the time is over, at least twenty times, with increasing seeds.
    func run(_ body: (inout SplitMix) throws -> Void) rethrows {
        let end = ContinuousClock.now + .seconds(Self.seconds)
        var seed = Self.seed
        while seed < Self.seed + 20 || ContinuousClock.now < end {
            var random = SplitMix(seed: seed)
            try body(&random)
            seed += 1
        }
    }

    static let texts = [
        "", "a", "hider", "seeking", "2026-03-31", "2026-03-31T09:00:00Z", "9999-99-99", "{{name}}", "{{#a}}", "\0",
        "👨‍👩‍👧", "\u{202E}x", "10.0.0.1", "::1", "*", "\\", "null", "-0", "é", String(repeating: "x", count: 600),
    ]

    func value(_ random: inout SplitMix, depth: Int = 0) -> JSONValue {
        switch Int.random(in: 0..<(depth > 4 ? 6 : 8), using: &random) {
        case 0: return .null
        case 1: return .bool(Bool.random(using: &random))
        case 2: return .int(Int64.random(in: .min ... .max, using: &random))
        case 3: return .int(Int64.random(in: -3...3, using: &random))
        case 4: return .double([0.5, -0.0, 1e300, 1e-300, 3].randomElement(using: &random) ?? 0)
        case 5: return .string(Self.texts.randomElement(using: &random) ?? "")
        case 6:
            return .array((0..<Int.random(in: 0...4, using: &random)).map { _ in value(&random, depth: depth + 1) })
        default:
            var members: [String: JSONValue] = [:]
            for _ in 0..<Int.random(in: 0...4, using: &random) {
                members[["a", "b", "id", "name", "role", ""].randomElement(using: &random) ?? "a"] = value(
                    &random, depth: depth + 1)
            }
            return .object(members)
        }
    }

    /// An example with random members changed, removed or added.
    func mutated(_ value: JSONValue, _ random: inout SplitMix) -> JSONValue {
        if Int.random(in: 0..<8, using: &random) == 0 { return self.value(&random) }
        switch value {
        case .object(var members):
            for name in members.keys.sorted() {
                guard let member = members[name] else { continue }
                members[name] = Int.random(in: 0..<20, using: &random) == 0 ? nil : mutated(member, &random)
            }
            return .object(members)
        case .array(let elements): return .array(elements.map { mutated($0, &random) })
        case .null, .bool, .int, .double, .string: return value
        }
    }

    @Test func `mutated events are decided or refused by every product's rules, with equal results twice`() throws {
        let ruleSets = try RuleDirectory.load(Shipped.directory)
        var examples: [(AppID, String, JSONValue)] = []
        for ruleSet in ruleSets.ruleSets.values.sorted(by: { $0.app < $1.app }) {
            let file = "\(Shipped.directory)/\(ruleSet.app).yaml"
            let text = try String(contentsOfFile: file, encoding: .utf8)
            let (_, reader) = RuleFile.read(text, file: "\(ruleSet.app).yaml")
            for (type, shape) in reader.catalog.sorted(by: { $0.key < $1.key }) {
                for example in shape.examples { examples.append((ruleSet.app, type, example)) }
            }
        }
        #expect(examples.count > 25)
        var answers: [String: Int] = [:]
        let now = moment("2026-02-26T12:00:00Z")
        run { random in
            let (app, type, example) = examples[Int.random(in: 0..<examples.count, using: &random)]
            let event = event(type, app: app.rawValue, mutated(example, &random))
            func word() -> String {
                switch ruleSets.evaluate(event, now: now, arrivedAt: now) {
                case .notify(let drafts, let signals, let set):
                    let record = EventCase(event, ruleSet: set, arrivedAt: now, drafts: drafts, signals: signals)
                    var people: [PersonKey: Person] = [:]
                    let decided = record.decisions(&people, ItemState(), now: now)
                    return "\(drafts.hashValue) \(signals.count) \(decided.count)"
                case .unrenderable(let error): return "\(error)"
                case .expired, .unknownApp, .unknownType: return "-"
                }
            }
            let answer = word()
            #expect(answer == word())
            answers[answer.contains("rule ") ? "refused" : "decided", default: 0] += 1
        }
        #expect(answers["refused", default: 0] > 0)
        #expect(answers["decided", default: 0] > 0)
    }

    @Test func `mutated bytes of an event are read or refused`() {
        let whole = Array(cloudEvent().utf8)
        run { random in
            var bytes = whole
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
                case 1: bytes.remove(at: place)
                default: bytes.insert(contentsOf: bytes[place...].prefix(20), at: place)
                }
                if bytes.isEmpty { bytes = whole }
            }
            let event = try? CloudEvents.decode(
                routingKey: "test.thing.happened", contentType: CloudEvents.structuredContentType, headers: [:],
                body: bytes)
            if let event { #expect(event.app.rawValue == "test") }
        }
    }

    @Test func `the index finds the same matches as the random patterns without it`() throws {
        run { random in
            let conditions = (0..<8).map { _ in
                Rule.Condition(events: ["e"], data: pattern(&random, depth: 0), attributes: nil)
            }
            let index = RuleIndex(conditions)
            for _ in 0..<8 {
                let happened = event("e", app: "test", .object(["a": value(&random), "b": value(&random)]))
                let found = Set(index.candidates(for: happened))
                for (position, condition) in conditions.enumerated() where condition.holds(happened) {
                    #expect(found.contains(position), "\(condition) \(happened.data)")
                }
            }
        }
    }

    func pattern(_ random: inout SplitMix, depth: Int) -> Pattern {
        var pattern = Pattern()
        for name in ["a", "b", "id"] where Bool.random(using: &random) {
            let isObject = depth < 2 && Int.random(in: 0..<4, using: &random) == 0
            let inner = isObject ? self.pattern(&random, depth: depth + 1) : Pattern()
            let matchers = (0..<Int.random(in: 1...3, using: &random)).map { _ in matcher(&random) }
            pattern.fields.append(
                Pattern.Field(name: name, test: isObject ? .object(inner) : .leaf(matchers)))
        }
        if depth == 0, Int.random(in: 0..<4, using: &random) == 0 {
            pattern.alternatives = [self.pattern(&random, depth: 1), self.pattern(&random, depth: 1)]
        }
        return pattern
    }

    func matcher(_ random: inout SplitMix) -> Matcher {
        let text = Self.texts.randomElement(using: &random) ?? ""
        switch Int.random(in: 0..<9, using: &random) {
        case 0: return .exact(value(&random, depth: 5))
        case 1: return .prefix(text, ignoringCase: Bool.random(using: &random))
        case 2: return .suffix(text, ignoringCase: Bool.random(using: &random))
        case 3: return Wildcard(text).map(Matcher.wildcard) ?? .exists(true)
        case 4: return .anythingBut([.exact(.string(text))])
        case 5: return .numeric([.init(relation: .less, bound: Double.random(in: -3...3, using: &random))])
        case 6: return .exists(Bool.random(using: &random))
        case 7: return CIDR(text).map(Matcher.cidr) ?? .anythingBut([.prefix(text, ignoringCase: false)])
        default: return .equalsIgnoreCase(text)
        }
    }

    @Test func `random templates are refused, render a bounded text, or report a missing variable`() {
        let pieces = [
            "{{", "}}", "{{a}}", "{{#a}}", "{{/a}}", "{{^a}}", "{{.}}", "{{date(a)}}", "{{excerpt(b)}}", "{{first(a)}}",
            "{{count(a)}}", "{{a.b}}", "{{{a}}}", "{{&b}}", "{{!x}}", "x", " ", "{{optional(a.id)}}", "{{number(a)}}",
            "{",
            "{{#b}}{{.}}{{/b}}", "{{km(b)}}", "{{time(a)}}", "{{> a}}", "{{=<% %>=}}", "\n",
        ]
        var rendered = 0
        run { random in
            let count = Int.random(in: 1...8, using: &random)
            let text = (0..<count).map { _ in pieces.randomElement(using: &random) ?? "" }.joined()
            guard let template = try? Template(text) else { return }
            let scope = Scope(
                root: .object(["a": value(&random), "b": value(&random), "name": "n"]),
                localization: Localization(language: Language("de-CH") ?? .english, zone: zone("Australia/Lord_Howe")))
            if let said = try? template.render(scope) {
                rendered += 1
                #expect(said.utf8.count < 200_000)
            }
        }
        #expect(rendered > 0)
    }

    @Test func `random rule files are accepted, or refused with a line`() throws {
        let text = try String(contentsOfFile: "\(Shipped.directory)/monolite-hr.yaml", encoding: .utf8)
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        run { random in
            var changed = lines
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let place = Int.random(in: 0..<changed.count, using: &random)
                switch Int.random(in: 0..<4, using: &random) {
                case 0: changed.remove(at: place)
                case 1: changed.insert(changed[Int.random(in: 0..<changed.count, using: &random)], at: place)
                case 2: changed[place] = "  " + changed[place]
                default: changed[place] = String(changed[place].shuffled(using: &random))
                }
            }
            do throws(RuleFileError) {
                _ = try RuleFile.parse(changed.joined(separator: "\n"), file: "monolite-hr.yaml")
            } catch {
                #expect(!error.problems.isEmpty)
                #expect(error.problems.allSatisfy { $0.line >= 1 && !$0.problem.isEmpty })
            }
        }
    }
}

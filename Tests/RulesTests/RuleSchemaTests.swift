import Foundation
import PushProtocol
import Testing

@testable import RuleLanguage
@testable import Rules

/// The JSON Schema for editors has the same keys at the same paths as the reader.
@Suite struct RuleSchemaTests {
    let schema: JSONValue

    init() throws {
        let file = URL(filePath: Shipped.directory).deletingLastPathComponent().appending(
            path: "DryRun/rule-file.schema.json")
        schema = try WireCoding.decode(JSONValue.self, from: Array(Data(contentsOf: file)))
    }

    /// A file with every mapping.
    static let everything = """
        app: test
        types: { t: { about: x } }
        caps: { c: { at-most: 1, within: 1h } }
        hold-out: { share: 5%, types: t }
        daily-promise: 6
        events:
          e: { from: other, examples: [{ u: [{ id: 1, r: x }], n: 1, d: "2026-01-01" }] }
          f: { examples: [{ n: 1 }] }
        groups: [{ event: e, group: g, members: u, id: id, role: r }]
        presence: [{ event: e, user: n }]
        reads: [{ event: e, user: n }]
        done: [{ event: e, item: x }, { receipt: opened, rules: a }]
        revoke: [{ event: e, item: x, user: n, inbox: keep }]
        replace: [{ event: f, item: x, rule: a }]
        live:
          l:
            to: { users: n }
            item: i
            on: [apple, android]
            title: x
            attributes-type: X
            state: { n: 1 }
            start: { event: e }
            update: { event: e, every: 5s }
            end: { event: e, dismiss-after: 1m }
            channel: { above: 9 }
            otherwise: { event: e, title: x }
        rules:
          a:
            when: { event: e, data: { n: [{ prefix: { equals-ignore-case: x } }, 1] } }
            to: [{ users: u, id: id }, { group: g }]
            say: { body: x, preview: { body: y }, languages: { de: { body: z, preview: { body: y } } } }
            how: { privacy: generic, platforms: apple, unless: { registered: live-activity }, apns: { payload: {} }, fcm: { dry-run: true },
              web: { urgency: low } }
            policy: { caps: c, surplus: digest, item: x, schedule: { at: d }, dedupe: { key: x, within: 1h },
              digest: { after: 1h, say: { body: x, preview: { body: y } } } }
          v:
            when: { event: e }
            to: { users: n }
            say: { body: x }
            variants:
              w: { share: 50%, say: { body: z }, how: { lane: bulk }, policy: { caps: c } }
              x: { share: 50%, hold-out: true }
          b:
            when: { event: e }
            to: { audience: everyone, devices: { app-version: { from: "4.2" } }, rate: 5, hold-out: 10% }
            say: { body: x }
          s:
            when: { event: e }
            to: { segment: { tag: x, devices: { app-version: { until: "5.0" } } }, except: n }
            say: { body: x }
          c:
            when: { event: e }
            to: { channel: "dHN0" }
            say: { live-activity: { event: update, content-state: { n: 1 }, stale-date: { after: 1m } } }
            how: { as: live-activity }
          d:
            when: { event: e }
            to: { users: u, id: id }
            say: { live-activity: { event: end, dismissal-date: { after: 1m } } }
            how: { as: live-activity, scope: s, unless: { registered: alert, scope: x } }
        """

    @Test func `the schema has the reader's keys at their paths, and no other`() throws {
        let (ruleSet, reader) = RuleFile.read(Self.everything, file: "test.yaml")
        #expect(reader.problems.isEmpty, "\(reader.problems)")
        #expect(ruleSet != nil)
        #expect(reader.tables.count > 25)
        for (path, keys) in reader.tables {
            let places = resolved(schema, path.split(separator: ".").map(String.init)[...])
            let known = places.compactMap { $0["properties"]?.object.map { Set($0.keys) } }
            #expect(known.contains(Set(keys)), "\(path): the reader has \(keys), the schema \(known)")
        }
    }

    @Test func `every keyword is in the schema`() throws {
        func words(_ path: String) -> Set<String> {
            Set(
                resolved(schema, path.split(separator: ".").map(String.init)[...])
                    .flatMap { $0["enum"]?.array ?? [] }.compactMap(\.string))
        }
        #expect(words("rules.x.how.as") == Set(Rule.DeliveryOptions.Kind.allCases.map(\.rawValue)))
        #expect(words("rules.x.say.live-activity.event") == Set(Activity.Event.allCases.map(\.rawValue)))
        #expect(words("rules.x.to.environment") == Set(ProviderEnvironment.allCases.map(\.rawValue)))
        #expect(words("rules.x.how.privacy") == Set(Rule.DeliveryOptions.Privacy.allCases.map(\.rawValue)))
        #expect(words("rules.x.how.lane") == Set(Lane.allCases.map(\.rawValue)))
        #expect(words("rules.x.how.interruption-level") == Set(InterruptionLevel.allCases.map(\.rawValue)))
        #expect(words("rules.x.policy.presence") == Set(Rule.Policy.Presence.allCases.map(\.rawValue)))
        #expect(words("rules.x.policy.surplus") == Set(Rule.Policy.Overflow.allCases.map(\.rawValue)))
        #expect(words("rules.x.policy.quiet-hours") == Set(Rule.Policy.QuietHours.allCases.map(\.rawValue)))
        #expect(words("rules.x.policy.digest.remains") == Set(Digest.Remains.allCases.map(\.rawValue)))
        #expect(words("rules.x.policy.digest.days") == Set(Weekday.allCases.map(\.rawValue)))
        let operators = try #require(schema["$defs"]?["operator"]?["properties"]?.object)
        #expect(Set(operators.keys) == Set(RuleFileReader.operators))
    }

    /// All schema alternatives for a path.
    private func resolved(_ node: JSONValue, _ path: ArraySlice<String>) -> [JSONValue] {
        if let name = node["$ref"]?.string?.split(separator: "/").last {
            return schema["$defs"]?[String(name)].map { resolved($0, path) } ?? []
        }
        if let choices = node["anyOf"]?.array { return choices.flatMap { resolved($0, path) } }
        guard let name = path.first else { return [node] }
        let rest = path.dropFirst()
        if Int(name) != nil, let items = node["items"] { return resolved(items, rest) }
        if let member = node["properties"]?[name] { return resolved(member, rest) }
        if let member = node["additionalProperties"], member.object != nil { return resolved(member, rest) }
        return []
    }
}

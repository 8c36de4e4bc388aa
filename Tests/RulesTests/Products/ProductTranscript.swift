import Foundation
import PushProtocol
import Testing

@testable import RuleDryRun
@testable import RuleLanguage
@testable import Rules

/// A week of a product in the dry run, as text that a person can review: every signal, decision, push and inbox entry.
///
/// The events, the people and the expected text of each product are in `Products/Golden`.
struct ProductTranscript {
    static let products = ["baolife", "family-portal", "hide-and-seek", "monolite-hr", "tweet-chat"]
    static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Golden")

    let app: String
    private let events: String
    private let people: Data

    init(_ app: String) throws {
        self.app = app
        events = try String(contentsOf: Self.folder.appending(path: "\(app).events.jsonl"), encoding: .utf8)
        people = try Data(contentsOf: Self.folder.appending(path: "\(app).people.json"))
    }

    static func expected(_ app: String) throws -> String {
        try String(contentsOf: folder.appending(path: "\(app).txt"), encoding: .utf8)
    }

    static func ruleFile(_ app: String) throws -> String {
        try String(contentsOfFile: "\(Shipped.directory)/\(app).yaml", encoding: .utf8)
    }

    /// - Returns: `nil` for rules that the reader refuses.
    func text(rules text: String) throws -> String? {
        guard let rules = try? RuleFile.parse(text, file: "\(app).yaml") else { return nil }
        let ruleSets = RuleSets([rules])
        var dryRun = DryRun(ruleSets)
        try DryRunFiles.people(people, name: app, into: &dryRun)
        let recorded = try DryRunFiles.events(events, name: app, ruleSets: ruleSets, start: Timestamp(milliseconds: 0))
        var lines = Self.types(rules)
        for one in recorded {
            guard let event = one.event else { continue }
            lines += (try? rules.signals(of: event))?.map { "\(event.id): \(Self.readableText($0))" } ?? []
        }
        for one in recorded { dryRun.process(one) }
        dryRun.advance(to: (recorded.last?.at ?? Timestamp(milliseconds: 0)) + .seconds(86_400))
        lines += try dryRun.predictions.flatMap { try Self.lines($0, rules) }
        lines += dryRun.refusals.map { "\(Self.time($0.at)) \($0.event) refused: \($0.reason)" }
        return lines.joined(separator: "\n") + "\n"
    }

    /// The types of the file. The built-in type is the same in all files.
    private static func types(_ rules: RuleSet) -> [String] {
        let types = rules.defaults.types.filter { $1 != AppDefaults.standard.types[$0] }
        return types.sorted { $0.key < $1.key }.map { name, type in
            "type \(name): \(type.about), \(type.isOn ? "on" : "off")\(type.isCritical ? ", critical" : "")"
        }
    }

    private static func lines(_ prediction: DryRun.PredictedDecision, _ rules: RuleSet) throws -> [String] {
        let isReported = rules.rule(named: prediction.rule)?.policy.isReported == true
        var lines = [
            "\(time(prediction.at)) \(prediction.user) \(prediction.event) \(prediction.rule) \(prediction.decision.readableText)\(isReported ? ", reported" : "")"
        ]
        if let notification = prediction.notification {
            let badge = notification.recipients.first?.badge.map { " badge \($0)" } ?? ""
            let scope = notification.scope.map { " scope \($0)" } ?? ""
            let expiry = notification.expiresAt.map { " until \(time($0))" } ?? ""
            lines.append(
                "  push \(notification.lane.rawValue)\(badge)\(scope)\(expiry) \(try json(notification.content))")
        }
        if let kept = prediction.kept, kept != prediction.content { lines.append("  inbox \(try json(kept))") }
        return lines
    }

    private static func readableText(_ signal: Signal) -> String {
        switch signal {
        case .present(let user, let device, let viewing, let lease):
            "\(user) looks at \(viewing ?? "something") on \(device) for \(lease.components.seconds) s"
        case .gone(let user, let device): "\(user) is gone from \(device)"
        case .read(let user, let thread): "\(user) has read \(thread ?? "everything")"
        case .membership(let group, let users, let change):
            "\(group) \(change.rawValue) "
                + users.sorted { $0.key.rawValue < $1.key.rawValue }.map { "\($0.key) \($0.value ?? "-")" }
                .joined(separator: ", ")
        case .done(let item): "\(item) is done"
        case .revoke(let item, let user, let keepsInbox, _):
            "\(item) is revoked for \(user?.rawValue ?? "all")\(keepsInbox ? ", not in the inbox" : "")"
        }
    }

    private static func json(_ content: Content) throws -> String {
        String(decoding: try WireCoding.encode(content), as: UTF8.self)
    }

    private static func time(_ moment: Timestamp) -> String { RFC3339.string(from: moment.date) }
}

/// The five products do what their documents say, to the byte. `HELIOGRAPH_RECORD=yes` writes the expected texts anew;
/// review the difference before you commit it.
@Suite struct ProductTranscriptTests {
    @Test(arguments: ProductTranscript.products)
    func `a product's week equals the reviewed transcript`(app: String) throws {
        let text = try #require(try ProductTranscript(app).text(rules: try ProductTranscript.ruleFile(app)))
        if ProcessInfo.processInfo.environment["HELIOGRAPH_RECORD"] == "yes" {
            try text.write(
                to: ProductTranscript.folder.appending(path: "\(app).txt"), atomically: true, encoding: .utf8)
        }
        let expected = try ProductTranscript.expected(app)
        guard text != expected else { return }
        let lines = text.split(separator: "\n")
        let wanted = expected.split(separator: "\n")
        let place = zip(lines, wanted).enumerated().first { $0.element.0 != $0.element.1 }?.offset
        let line = place ?? min(lines.count, wanted.count)
        let now = line < lines.count ? lines[line] : "nothing"
        let before = line < wanted.count ? wanted[line] : "nothing"
        Issue.record("\(app).txt:\(line + 1): \(now) instead of \(before)")
    }

    @Test(arguments: ProductTranscript.products)
    func `every rule of a product sends a notification in its week`(app: String) throws {
        let rules = try Shipped.ruleSet(app)
        let expected = try ProductTranscript.expected(app)
        for rule in rules.rules { #expect(expected.contains(" \(rule.name) push"), "\(rule.name) is never pushed") }
    }
}

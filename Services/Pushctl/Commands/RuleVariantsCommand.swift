import ArgumentParser
import DecisionLog
import FoundationEssentials
import PushProtocol
import RuleLanguage

/// `pushctl rules variants`: compares the variants of a rule.
struct RuleVariantsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "variants", abstract: "Compare the variants of a rule by their users, with a verdict on each.",
        discussion: """
            Each user counts once. The first variant of the file is the one that the others are compared with. The \
            result may be looked at any time: with no effect at all, a look at all times finds one in at most 5 % of \
            the rules. The service stops a harmful variant by itself: its users get the first one. Decisions older \
            than the service keeps are not counted.
            """)

    private static let defaultLength = Duration.seconds(30 * 86_400)

    @Argument(help: ArgumentHelp("The app's rule file, or the folder of rule files.", valueName: "path"))
    var path: String
    @Option(help: "The app.") var app: String
    @Option(help: "The rule. Default: each rule with variants.") var rule: String?
    @Option(help: "The start, such as 2026-03-31T09:00:00Z. Default: 30 days before --until.") var from: String?
    @Option(help: "Until when; now.") var until: String?
    @Option(help: "The number that decides: opened, dismissed or accepted.")
    var measure = VariantReport.Measure.opened
    @OptionGroup var output: OutputOption

    func run() async throws {
        let asked = try DecisionReport(path, app: app, from: from, until: until, length: Self.defaultLength)
        let rules = try compared(asked.rules.variedRules)
        let reports = try await withDatabase { database in
            var reports: [VariantReport] = []
            for rule in rules {
                reports.append(
                    try await VariantStore(database).report(
                        of: ComparedRule(name: rule.name, type: rule.type, variants: rule.variants), app: asked.app,
                        from: asked.from, until: asked.until, measure: measure))
            }
            return reports
        }
        let lines = reports.map { ["rule \($0.rule)"] + $0.lines }
        try output.write(
            ["variants": .array(reports.map(\.json))], text: Array(lines.joined(separator: [""])))
    }

    private func compared(_ all: [RuleSet.VariedRule]) throws -> [RuleSet.VariedRule] {
        guard !all.isEmpty else { throw CommandError("no rule of \(app) has variants", .notFound) }
        guard let rule else { return all }
        guard let one = all.first(where: { $0.name == rule }) else {
            let names = all.map(\.name).joined(separator: ", ")
            throw CommandError("the rule “\(rule)” has no variants; these have: \(names)", .notFound)
        }
        return [one]
    }
}

extension VariantReport.Measure: ExpressibleByArgument {}

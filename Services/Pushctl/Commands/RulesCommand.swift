import ArgumentParser
import RuleDryRun

/// `pushctl rules …`: checks and previews rule files, and counts rule outcomes.
struct RulesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rules",
        abstract:
            "Check rule files, preview their notifications, compare two versions, describe their events, and count outcomes.",
        subcommands: RuleTool.commands.filter { $0 != RuleTool.Diff.self } + [
            RulesDiffCommand.self, RuleCountsCommand.self, RuleVariantsCommand.self, RuleAttentionCommand.self,
            RuleFunnelCommand.self,
        ])
}

import ArgumentParser
import Foundation

/// `pushctl rules …`: what `rules` says of rule files, and what came of the rules.
struct RulesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rules",
        abstract:
            "Checks rule files, previews what they would tell, compares two versions, and counts what came of them.",
        discussion: """
            check PATH…                                   every mistake in rule files, with file, line and key
            preview PATH --events FILE [--people FILE] [--apps FILE]
                                                          what everyone would get on each platform, when, and why
            diff OLD NEW --events FILE [--people FILE]    who would hear more, less, later or otherwise

            Nothing is sent. PATH is a folder of rule files or one of them. This is done by the executable “rules”, which
            is found beside this one or in PATH.
            """, subcommands: [Check.self, Preview.self, Diff.self, RuleCountsCommand.self])

    struct Check: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Names every mistake in rule files.")
        @Argument(parsing: .captureForPassthrough, help: "Folders of rule files, or single ones.")
        var arguments: [String] = []

        func run() throws { try RulesExecutable.answer("check", arguments) }
    }

    struct Preview: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Shows what everyone would get on each platform, when, and why.")
        @Argument(parsing: .captureForPassthrough, help: "PATH --events FILE [--people FILE] [--apps FILE]")
        var arguments: [String] = []

        func run() throws { try RulesExecutable.answer("preview", arguments) }
    }

    struct Diff: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Shows who would hear more, less, later or otherwise by other rules.")
        @Argument(parsing: .captureForPassthrough, help: "OLD NEW --events FILE [--people FILE]")
        var arguments: [String] = []

        func run() throws { try RulesExecutable.answer("diff", arguments) }
    }
}

extension RulesExecutable {
    /// Becomes it, to do what it does for `verb`.
    fileprivate static func answer(_ verb: String, _ arguments: [String]) throws -> Never {
        guard let path = find() else {
            throw Refusal("there is no executable “\(name)” beside pushctl, nor in PATH")
        }
        let code = become(path, [verb] + arguments)
        throw Refusal("\(path) cannot be run: \(String(cString: strerror(code)))")
    }
}

import ArgumentParser
import Foundation

/// `pushctl rules …`: checks and previews rule files, and counts rule outcomes.
struct RulesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rules",
        abstract:
            "Check rule files, preview their notifications, compare two versions, and count outcomes.",
        discussion: """
            check PATH…                                   print every mistake with file, line and key
            preview PATH --events FILE [--people FILE] [--apps FILE]
                                                          print each user's notifications, with time and reason
            diff OLD NEW --events FILE [--people FILE]    print the users whose notifications change

            Nothing is sent. PATH is a folder of rule files or a single file. These commands run the executable “rules”,
            beside pushctl or in the PATH variable.
            """, subcommands: [Check.self, Preview.self, Diff.self, RuleCountsCommand.self])

    struct Check: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Check rule files and print every mistake.")
        @Argument(parsing: .captureForPassthrough, help: "Folders of rule files, or single files.")
        var arguments: [String] = []

        func run() throws { try RulesExecutable.run("check", arguments) }
    }

    struct Preview: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Preview each user's notifications on each platform, with time and reason.")
        @Argument(parsing: .captureForPassthrough, help: "PATH --events FILE [--people FILE] [--apps FILE]")
        var arguments: [String] = []

        func run() throws { try RulesExecutable.run("preview", arguments) }
    }

    struct Diff: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Compare two versions: users with more, fewer, later or different notifications.")
        @Argument(parsing: .captureForPassthrough, help: "OLD NEW --events FILE [--people FILE]")
        var arguments: [String] = []

        func run() throws { try RulesExecutable.run("diff", arguments) }
    }
}

extension RulesExecutable {
    /// Runs the executable with `verb`, in place of this process.
    fileprivate static func run(_ verb: String, _ arguments: [String]) throws -> Never {
        guard let path = find() else {
            throw CommandError("no executable “\(name)” beside pushctl or in PATH")
        }
        let code = exec(path, [verb] + arguments)
        throw CommandError("\(path) cannot be run: \(String(cString: strerror(code)))")
    }
}

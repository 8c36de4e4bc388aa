import ArgumentParser
import Foundation

/// `pushctl rules check|preview|diff`: what `rules` says of rule files.
struct RulesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rules",
        abstract: "Checks rule files, previews what they would tell, and compares two versions of them.",
        discussion: """
            check PATH…                                   every mistake in rule files, with file, line and key
            preview PATH --events FILE [--people FILE] [--apps FILE]
                                                          what everyone would get on each platform, when, and why
            diff OLD NEW --events FILE [--people FILE]    who would hear more, less, later or otherwise

            Nothing is sent.
            PATH is a folder of rule files or one of them. This is done by the executable “rules”, which is found beside
            this one or in PATH.
            """)

    @Argument(parsing: .captureForPassthrough, help: "check, preview or diff, and what belongs to it.")
    var arguments: [String] = []

    func run() throws {
        guard let verb = arguments.first, ["check", "preview", "diff"].contains(verb) else {
            throw CleanExit.helpRequest(self)
        }
        guard let path = RulesExecutable.find() else {
            throw Refusal("there is no executable “\(RulesExecutable.name)” beside pushctl, nor in PATH")
        }
        let code = RulesExecutable.become(path, arguments)
        throw Refusal("\(path) cannot be run: \(String(cString: strerror(code)))")
    }
}
